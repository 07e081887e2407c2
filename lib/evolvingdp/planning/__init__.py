"""Which method of the book serves a problem, and with what error: one question, all chapters.

`plan(Question(...))` answers with a prediction for each method that serves, best first, and a reason for each that does not;
`reach` asks the other way round. It imports from all papers, and no paper from it.
"""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__,
    answer=["Answer", "Prediction", "Refusal"],
    planner=["Reached", "plan", "reach"],
    question=["Question"],
)

"""Which method of the book serves a problem, and with what error: one question, all chapters.

`plan(Question(...))` answers with a prediction for each method that serves, best first, and a reason for each that does not;
`reach` asks the other way round. It imports from all papers, and no paper from it.
"""

from evolvingdp.planning.answer import Answer, Prediction, Refusal
from evolvingdp.planning.planner import Reached, plan, reach
from evolvingdp.planning.question import Question

__all__ = ["Answer", "Prediction", "Question", "Reached", "Refusal", "plan", "reach"]

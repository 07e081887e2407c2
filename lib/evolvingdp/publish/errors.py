"""What a person who runs a command should read in one line."""


class PublishError(Exception):
    """A command could not do what it was asked for; the message says why."""


class NotebookError(PublishError):
    """A notebook raised, and the message is its own traceback; or several notebooks failed."""


class SweepError(PublishError):
    """Some points failed; the message holds their tracebacks.  All others are kept."""


class BookError(PublishError):
    """The book was not rendered, printed or packed."""


class DataError(PublishError):
    """A table or the corpus is missing or not what it should be."""

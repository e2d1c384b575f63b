"""The one error type for wrong input: everything wrong with it at once, each with its place and its remedy."""


class InputError(Exception):
    """Wrong input from a person; command lines print `messages` and exit with code 2, nothing having been started.

    A message says where, what is wrong, what is allowed, what was given, and the next step.
    """

    def __init__(self, *messages: str) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages

"""What holds for every test: nothing of the developer's environment, and chance that repeats."""

import os

from hypothesis import settings

# A variable of whoever runs the tests must not decide what they prove.
for name in [name for name in os.environ if name.startswith(("CONSOLE_", "CORE_"))]:
    del os.environ[name]

# On CI the same commit gives the same answer; at a desk every run looks somewhere else. No
# deadline: on a shared machine one slow example says nothing.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

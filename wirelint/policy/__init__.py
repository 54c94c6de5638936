"""Argument policies: what the arguments of tools must be like, as the people who run the tools wrote it down.

A policy names tools and arguments, says what a value must be, and what is to happen to one that is not. It is read from a
file (`policy.file`), holds values to its checks (`policy.checks`) and changes them (`policy.judging`). Nothing in here
opens a file by itself: whether a directory exists is asked through a port (`policy.disk`).
"""

from wirelint.policy.judging import NO_POLICIES as NO_POLICIES
from wirelint.policy.judging import Breach as Breach
from wirelint.policy.judging import Judgement as Judgement
from wirelint.policy.judging import Policies as Policies
from wirelint.policy.judging import Policy as Policy

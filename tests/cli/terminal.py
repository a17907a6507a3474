"""`python -m orchestrator` that reads from the terminal it prints to, where a zygote starts it."""

import os
import runpy

if __name__ == "__main__":
    os.dup2(1, 0)
    runpy.run_module("orchestrator", run_name="__main__", alter_sys=True)

"""The inside of the bundled sandbox: a zygote that forks sessions, and what each session is made of.

Only the standard library of Python 3.9 or later is used, so that it runs wherever there is a Python at all.
"""

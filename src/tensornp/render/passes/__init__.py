"""What a pass has done, call by call.

In: records of calls. Out: text and HTML. Start with `followed_pass.py`.
"""

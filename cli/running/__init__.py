"""What `tallystick run` does beside leasing: the folder that travels, what comes back, and what is
shown while the program runs.
"""

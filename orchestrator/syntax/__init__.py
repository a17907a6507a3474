"""Does this text parse in its language, and what does it export?"""

"""What a source text says: does it parse, what does it import, export, test, declare?"""

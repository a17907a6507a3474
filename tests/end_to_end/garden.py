"""A backlog as a product owner exports it: twenty columns, CRLF, prose in every cell, no rule kept everywhere."""

from tests.backlogs.backlog_samples import HEADER

RAN = ("NFR-001", "US-001", "US-002")
"""The stories that the scripted team works on."""
ROWS = {
    "STYLE-001": '''STYLE-001,Allotment Look & Feel,"As a designer, I want one look so that members feel at home.",'''
    '''"Leaf green (#2F7D32), soil (#5B4636), ""seed"" white (#FBFAF5); Font: Georgia, 'Times New Roman', serif",'''
    '''"Contrast above 4.5:1; No flicker",Plain CSS,,Nothing from other servers,'''
    '''"1. Pages use the named colours; 2. Buttons look alike; 3. Nothing flickers",High,Backlog,LOOK: friendly,,'''
    '''"Base of every WF-xxx; may get a dark side | [2026-03-02 09:15] looked at with the board",,,,,,''',
    "US-002": '''US-002,Water Duty,"As a member,\r\nI want to know when it is my turn\r\nso that nothing dries up.",'''
    '''Weeks are numbered; Plots take turns,,Plot list,US-001 (plots in order); STYLE-001,"Dry summers, see minutes",'''
    '''"1. Turns go through the plots in order;\r\n2. After the last plot the first is next; 3. No plots, no duty",'''
    '''High,Backlog,DUTIES: water,wf-002-duty,"Who swaps tells the other; ""borrowed"" cans come back",,,,,,''',
    "WF-002": '''WF-002,Water Duty Page,"As a member, I want a page for it.",'''
    '''Table; Names,"Works on old phones",,STYLE-001,,'''
    '''1. A table is shown; 2. Follows STYLE-001,Low,Backlog,DUTIES: water,wf-002-duty,UI of US-002,,,,,,''',
    "US-001": '''US-001,Plots in Order,"As the treasurer, I want plots sorted the way people say them.",'''
    '''"Plot names are a letter and a number: A2 comes before A10","Answers at once (<1s)",Members' list,'''
    '''"NFR-001, the ground work",Names are kept as they are,'''
    '''"1. A2 comes before A10; 2. Letters count before numbers (""B1"" after ""A10""); '''
    '''3. An empty list stays empty",'''
    '''Medium,Backlog,"PLOTS: list, map and names",wf-001-plots,Müller's plot is »Ä1«,,,,,,''',
    "WF-001": '''WF-001,Plots Page,"As a member, I want to see the plots.",List,ARIA labels,,STYLE-001,,'''
    '''1. HTML shows the list; 2. Mobile,Medium,Backlog,PLOTS,wf-001-plots,,,,,,,''',
    "US-003": '''US-003,Rent,"As the treasurer, I want rents reckoned.",Area times price,Exact to the cent,,'''
    '''"US-001, US-004",,1. Rent is area times price; 2. Cents are exact,High,Backlog,MONEY,wf-003-rent,,,,,,,''',
    "WF-003": '''WF-003,Rent Page,,Form,,,STYLE-001,,1. Form is shown,Medium,Backlog,MONEY,wf-003-rent,,,,,,,''',
    "US-004": '''US-004,Members,"As the secretary, I want members kept.",Name; Plot,,,NFR-001,GDPR,'''
    '''1. Members are kept; 2. Leaving removes the name,High,Backlog,MEMBERS,,,,,,,,''',
    "NFR-002": '''NFR-002,Names Stay Here,As a member I want my data kept here.,,No name leaves the house,,US-004,'''
    '''"GDPR; statutes §4",1. Export works; 2. Nothing is sent,High,Backlog,MEMBERS,,,,,,,,''',
    "US-005": '''US-005,Seed Swap,"As a member, I want to offer seeds.",,,,"US-004 (members); see also ISO-8601",,'''
    '''1. Offers are listed,Low,Backlog,,,,,,,,,''',
    "NFR-001": '''NFR-001,Ground Work,As a developer I want one package.,'''
    '''Package garden,Python only,,None (foundational),'''
    '''"Standard library; no set-up","1. The package garden can be imported; 2. It tells its version; 3. It runs on '''
    '''the committee's old laptop without services.",High,Backlog,STACK,,All others wait for it.,,,,,,''',
    "US-999": '''US-999,Start Page,"As a member, I want one page to start from.",Links,,,'''
    '''"US-001 (Plots), US-002 (Water), NFR-001",,'''
    '''1. Links to plots and duty,Medium,Backlog,,wf-999-start,,,,,,,''',
    "WF-999": '''WF-999,Start Page UI,,Links,,,STYLE-001,,1. Links are shown,Medium,Backlog,,wf-999-start,,,,,,,''',
}  # fmt: skip
"""Story id → its row as it stands in the file."""
CONTENT = "".join(f"{line}\r\n" for line in (HEADER, *ROWS.values())).encode()

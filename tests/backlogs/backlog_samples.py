"""Backlogs as people leave them behind, for the tests of several rooms."""

HEADER = (
    "Story_ID,Title,User_Story,Functional_Requirements,Non_Functional_Requirements,Integrations,Dependencies,"
    "Constraints,Acceptance_Criteria,Priority,Status,Vision_Ref,Wireframe_Ref,Notes,Sprint_ID,Execution_Status,"
    "Execution_Started_At,Execution_Completed_At,Last_Event,Last_Updated"
)

MESSY = (
    b"\xef\xbb\xbf" + HEADER.encode() + b",Owner \r\n"
    b'LIB-001,Lend a book,"As a reader, I want ""Dune""",a,,DB,LIB-900; LIB-009,,"1. Book is lent; 2. Shelf shows it",'
    b"Medium,Backlog,KEY: lending,wf-001,,,,,,,,Ann\r\n"
    b'LIB-002,"Return\r\na book","multi\nline, text",,,,"LIB-001 (lending); LIB-009",,"1. Returned\n2. Fee shown",'
    b'"High",Backlog,,,"",,,,,,,\n'
    b",,,,\r\n"
    b"LIB-009,Login,,,,,LIB-900,,- works\r\n"
    b"\r\n"
    b"LIB-900,Set-up \xc3\xa9,,,,,None (foundational),,,High,Backlog,,,,,,,,,,"
)
"""BOM, CRLF and LF, line breaks in cells, short rows, blank rows, an own column, no end of line at the end."""

SIMPLE = (
    b"Story_ID,Title,Dependencies,Sprint_ID,Execution_Status,Last_Event\nA-1,One,,,,\nA-2,Two,A-1,,,\nA-3,Three,,,,\n"
)

"""MDX: its modules are judged, code that it only shows and words are not."""

from tests.contract.test_rules import frozen, said

WORLD = frozen("docs/page.mdx")
PAGE = """---
title: Prices
---

import React from 'react'
export const meta = {
  tags: ['x'],
}

# Prices

In words one writes import x from 'words' now and then.

```js
import evil from 'evil'

const other = require('evil')
```

<Button onClick={() => 1} />
"""


def test_modules_of_mdx() -> None:
    assert said("docs/page.mdx", PAGE, world=WORLD) == []
    for line in ("import E from 'evil'", "import {\n  E\n} from 'evil'", "export { E } from 'evil'"):
        found = said("docs/page.mdx", PAGE.replace("# Prices\n", f"{line}\n\n# Prices\n"), world=WORLD)
        assert [(one.code, one.ask, one.where.field) for one in found] == [("contract.import", True, "evil")]

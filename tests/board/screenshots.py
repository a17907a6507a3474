"""Pictures of pages, kept small for the documentation."""

import base64

from playwright.sync_api import Browser, Page

_ENCODE = """async ([png, quality]) => {
    const image = await createImageBitmap(await (await fetch(png)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height);
    canvas.getContext("2d").drawImage(image, 0, 0);
    const blob = await canvas.convertToBlob({ type: "image/webp", quality });
    return btoa(Array.from(new Uint8Array(await blob.arrayBuffer()), (one) => String.fromCharCode(one)).join(""));
}"""


def take(page: Page) -> bytes:
    """Returns what the window shows as WebP; made in an empty page, for ours may fetch nothing."""
    png = f"data:image/png;base64,{base64.b64encode(page.screenshot()).decode()}"
    browser = page.context.browser
    assert isinstance(browser, Browser)
    blank = browser.new_page()
    try:
        encoded: str = blank.evaluate(_ENCODE, [png, 0.75])
    finally:
        blank.close()
    return base64.b64decode(encoded)

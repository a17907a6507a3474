"""Pictures of pages: kept small for the documentation, and compared in a way that survives other fonts.

Both pictures are averaged over blocks of BLOCK pixels, which letters hardly change and panels, badges, columns and
colours do. A block fits when the other picture has nearly its colour within NEAR blocks of it: lines that are a little
higher or wider move what comes behind them. Pictures are alike when all but FEW of the blocks of each fit the other.
"""

import base64

from playwright.sync_api import Browser, Page

BLOCK = 16
"""Pixels, in both directions."""
NEAR = 3
"""Blocks, in both directions."""
TOLERANCE = 14
"""Of 255, in each of red, green and blue."""
FEW = 0.01
"""The share of blocks."""
_ENCODE = """async ([png, quality]) => {
    const image = await createImageBitmap(await (await fetch(png)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height);
    canvas.getContext("2d").drawImage(image, 0, 0);
    const blob = await canvas.convertToBlob({ type: "image/webp", quality });
    return btoa(Array.from(new Uint8Array(await blob.arrayBuffer()), (one) => String.fromCharCode(one)).join(""));
}"""
_COMPARE = """async ([pictures, size, near, tolerance]) => {
    const average = async (address) => {
        const image = await createImageBitmap(await (await fetch(address)).blob());
        const width = Math.floor(image.width / size), height = Math.floor(image.height / size);
        const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
        canvas.drawImage(image, 0, 0);
        const { data } = canvas.getImageData(0, 0, image.width, image.height);
        const blocks = new Float32Array(width * height * 3);
        for (let y = 0; y < height * size; y++) {
            for (let x = 0; x < width * size; x++) {
                const from = (y * image.width + x) * 4, to = (Math.floor(y / size) * width + Math.floor(x / size)) * 3;
                for (let colour = 0; colour < 3; colour++) blocks[to + colour] += data[from + colour] / size / size;
            }
        }
        return { width, height, blocks };
    };
    const fits = (one, other, x, y) => {
        const here = (y * one.width + x) * 3;
        for (let row = Math.max(0, y - near); row <= Math.min(other.height - 1, y + near); row++) {
            for (let column = Math.max(0, x - near); column <= Math.min(other.width - 1, x + near); column++) {
                const there = (row * other.width + column) * 3;
                const by = (colour) => Math.abs(one.blocks[here + colour] - other.blocks[there + colour]);
                if (Math.max(by(0), by(1), by(2)) <= tolerance) return true;
            }
        }
        return false;
    };
    const missing = (one, other) => {
        let count = 0;
        for (let y = 0; y < one.height; y++) for (let x = 0; x < one.width; x++) count += !fits(one, other, x, y);
        return count / (one.width * one.height);
    };
    const [one, other] = await Promise.all(pictures.map(average));
    return one.width === other.width && one.height === other.height
        ? Math.max(missing(one, other), missing(other, one)) : 1;
}"""


def take(page: Page) -> bytes:
    """Returns what the window shows as WebP."""
    encoded = _run(page, _ENCODE, [_address(page.screenshot(), "png"), 0.75])
    return base64.b64decode(encoded)


def compare(page: Page, one: bytes, other: bytes) -> float:
    """Returns the share of blocks of one picture that the other one lacks, at most 1."""
    return float(_run(page, _COMPARE, [[_address(one, "webp"), _address(other, "webp")], BLOCK, NEAR, TOLERANCE]))


def _run(page: Page, script: str, argument: object) -> str:
    """In an empty page: ours may fetch nothing."""
    browser = page.context.browser
    assert isinstance(browser, Browser)
    blank = browser.new_page()
    try:
        result: str = blank.evaluate(script, argument)
    finally:
        blank.close()
    return result


def _address(picture: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"

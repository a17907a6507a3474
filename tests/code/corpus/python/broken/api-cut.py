"""HTTP API of the parcel desk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Query, status
from pydantic import BaseModel, Field

from parcels.store import Store, open_store


class ParcelIn(BaseModel):
    """What a sender hands in."""

    street: str = Field(min_length=1, max_length=200)
    weight_g: int = Field(gt=0, le=30_000)
    tags: list[str] = Field(default_factory=list)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.store = await open_store("parcels.db")
    try:
        yield
    finally:
        await app.state.store.close()


app = FastAPI(title="Parcel desk", lifespan=lifespan)


def store() -> Store:
    return app.state.store


@app.get("/parcels")
async def list_parcels(
    held: Annotated[Store, Depends(store)],
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> dict[str, object]:
    rows = await held.newest(limit)
    return {"count": len(rows), "it
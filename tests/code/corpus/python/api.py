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
    return {"count": len(rows), "items": [row.as_dict() for row in rows]}


@app.post("/parcels", status_code=status.HTTP_201_CREATED)
async def add_parcel(parcel: ParcelIn, held: Annotated[Store, Depends(store)]) -> dict[str, int]:
    if parcel.weight_g > 20_000 and "bulky" not in parcel.tags:
        raise HTTPException(status_code=422, detail=f"{parcel.weight_g} g needs the tag 'bulky'")
    async with asyncio.timeout(5):
        number = await held.add(parcel.model_dump())
    return {"number": number}

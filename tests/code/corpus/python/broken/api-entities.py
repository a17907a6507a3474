&quot;&quot;&quot;HTTP API of the parcel desk.&quot;&quot;&quot;

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Query, status
from pydantic import BaseModel, Field

from parcels.store import Store, open_store


class ParcelIn(BaseModel):
    &quot;&quot;&quot;What a sender hands in.&quot;&quot;&quot;

    street: str = Field(min_length=1, max_length=200)
    weight_g: int = Field(gt=0, le=30_000)
    tags: list[str] = Field(default_factory=list)


@asynccontextmanager
async def lifespan(app: FastAPI) -&gt; AsyncIterator[None]:
    app.state.store = await open_store(&quot;parcels.db&quot;)
    try:
        yield
    finally:
        await app.state.store.close()


app = FastAPI(title=&quot;Parcel desk&quot;, lifespan=lifespan)


def store() -&gt; Store:
    return app.state.store


@app.get(&quot;/parcels&quot;)
async def list_parcels(
    held: Annotated[Store, Depends(store)],
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -&gt; dict[str, object]:
    rows = await held.newest(limit)
    return {&quot;count&quot;: len(rows), &quot;items&quot;: [row.as_dict() for row in rows]}


@app.post(&quot;/parcels&quot;, status_code=status.HTTP_201_CREATED)
async def add_parcel(parcel: ParcelIn, held: Annotated[Store, Depends(store)]) -&gt; dict[str, int]:
    if parcel.weight_g &gt; 20_000 and &quot;bulky&quot; not in parcel.tags:
        raise HTTPException(status_code=422, detail=f&quot;{parcel.weight_g} g needs the tag &#x27;bulky&#x27;&quot;)
    async with asyncio.timeout(5):
        number = await held.add(parcel.model_dump())
    return {&quot;number&quot;: number}

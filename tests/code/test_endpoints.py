"""HTTP endpoints from sources."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.code.javascript import source
from orchestrator.code.python import surface
from orchestrator.core.contract import Endpoint


def shown(found: tuple[Endpoint, ...]) -> list[str]:
    return [f"{entry.method} {entry.path} {entry.target}".strip() for entry in found]


def test_flask() -> None:
    text = """
from flask import Blueprint, Flask
app = Flask(__name__)
api = Blueprint("api", __name__, url_prefix="/api")
@app.route("/")
def home(): ...
@api.route("/books/<int:id>", methods=["GET", "DELETE"])
def book(id): ...
@api.post("/books")
def add(): ...
@app.route("/any", methods=METHODS)
def any_(): ...
@cache.get("key")
def no(): ...
app.add_url_rule("/health", "health", health, methods=["GET"])
app.register_blueprint(api, url_prefix="/v1")
"""
    assert shown(surface.endpoints(text, "app.py")) == [
        "GET / home",
        "GET /api/books/<int:id> book",
        "DELETE /api/books/<int:id> book",
        "POST /api/books add",
        "ANY /any any_",
        "GET /health health",
        "MOUNT /v1 api",
    ]


def test_fastapi() -> None:
    text = """
app = FastAPI()
router = APIRouter(prefix="/users", tags=["users"])
@router.get("")
async def list_users(): ...
@router.put("/{user_id}", response_model=User)
async def change(user_id: int): ...
@router.api_route("/both", methods=["GET", "POST"])
async def both(): ...
@app.websocket("/ws")
async def live(socket): ...
app.include_router(router, prefix="/api")
"""
    assert shown(surface.endpoints(text, "main.py")) == [
        "GET /users list_users",
        "PUT /users/{user_id} change",
        "GET /users/both both",
        "POST /users/both both",
        "WS /ws live",
        "MOUNT /api router",
    ]


def test_django() -> None:
    text = """
router = DefaultRouter()
router.register("loans", LoanViewSet)
urlpatterns = [
    path("books/<int:pk>/", views.BookView.as_view(), name="book"),
    re_path(r"^old/(?P<n>[0-9]+)$", views.old),
    path("admin/", admin.site.urls),
    path("api/", include("api.urls")),
    path("in/", include([path("a/", views.a), path("", views.b)])),
] + static("/x")
urlpatterns += [path("more/", views.more)]
"""
    assert shown(surface.endpoints(text, "urls.py")) == [
        "ANY /loans/ LoanViewSet",
        "ANY /books/<int:pk>/ views.BookView",
        "ANY /old/(?P<n>[0-9]+)$ views.old",
        "ANY /admin/ admin.site.urls",
        "MOUNT /api/ api.urls",
        "ANY /in/a/ views.a",
        "ANY /in/ views.b",
        "ANY /more/ views.more",
    ]


def test_express() -> None:
    text = """
const express = require('express');
const shop = express.Router();
const app = express();
app.get('title');
app.get('/health', (req, res) => res.send('ok'));
app.use('/api', auth, shop);
app.use(express.json());
app.use('/late', require('./routes/late'));
shop.post(`/items`, validate, items.create);
shop.route('/items/:id').get(read).delete(remove);
app.all(['/a', '/b'], both);
cache.get('/not', one);
module.exports = (router) => { router.patch('/x', fix) };
"""
    assert sorted(shown(source.endpoints(text, "app.js"))) == sorted(
        [
            "GET /health",
            "MOUNT /api shop",
            "MOUNT /late ./routes/late",
            "POST /items items.create",
            "GET /items/:id read",
            "DELETE /items/:id remove",
            "ANY /a both",
            "ANY /b both",
            "PATCH /x fix",
        ]
    )


@given(st.text(alphabet="@app.get('/x')\n def:router=[]Flask", max_size=80))
def test_no_text_raises(text: str) -> None:
    surface.endpoints(text, "a.py")
    source.endpoints(text, "a.js")

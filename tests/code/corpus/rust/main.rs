use actix_web::{get, post, web, App, HttpResponse, HttpServer, Responder};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Parcel {
    id: u64,
    street: String,
    #[serde(default)]
    tags: Vec<String>,
}

struct Desk {
    parcels: Mutex<Vec<Parcel>>,
}

#[get("/parcels/{id}")]
async fn one(desk: web::Data<Desk>, id: web::Path<u64>) -> impl Responder {
    let parcels = desk.parcels.lock().unwrap();
    match parcels.iter().find(|parcel| parcel.id == *id) {
        Some(parcel) => HttpResponse::Ok().json(parcel),
        None => HttpResponse::NotFound().body(format!("no parcel {id}")),
    }
}

#[post("/parcels")]
async fn add(desk: web::Data<Desk>, body: web::Json<Parcel>) -> Result<HttpResponse, actix_web::Error> {
    let mut parcels = desk.parcels.lock().unwrap();
    if body.street.is_empty() || body.tags.len() > 10 {
        return Ok(HttpResponse::UnprocessableEntity().finish());
    }
    parcels.push(body.into_inner());
    Ok(HttpResponse::Created().finish())
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let desk = web::Data::new(Desk { parcels: Mutex::new(vec![]) });
    HttpServer::new(move || App::new().app_data(desk.clone()).service(one).service(add))
        .bind(("127.0.0.1", 8080))?
        .run()
        .await
}

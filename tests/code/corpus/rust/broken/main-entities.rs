use actix_web::{get, post, web, App, HttpResponse, HttpServer, Responder};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Parcel {
    id: u64,
    street: String,
    #[serde(default)]
    tags: Vec&lt;String&gt;,
}

struct Desk {
    parcels: Mutex&lt;Vec&lt;Parcel&gt;&gt;,
}

#[get(&quot;/parcels/{id}&quot;)]
async fn one(desk: web::Data&lt;Desk&gt;, id: web::Path&lt;u64&gt;) -&gt; impl Responder {
    let parcels = desk.parcels.lock().unwrap();
    match parcels.iter().find(|parcel| parcel.id == *id) {
        Some(parcel) =&gt; HttpResponse::Ok().json(parcel),
        None =&gt; HttpResponse::NotFound().body(format!(&quot;no parcel {id}&quot;)),
    }
}

#[post(&quot;/parcels&quot;)]
async fn add(desk: web::Data&lt;Desk&gt;, body: web::Json&lt;Parcel&gt;) -&gt; Result&lt;HttpResponse, actix_web::Error&gt; {
    let mut parcels = desk.parcels.lock().unwrap();
    if body.street.is_empty() || body.tags.len() &gt; 10 {
        return Ok(HttpResponse::UnprocessableEntity().finish());
    }
    parcels.push(body.into_inner());
    Ok(HttpResponse::Created().finish())
}

#[actix_web::main]
async fn main() -&gt; std::io::Result&lt;()&gt; {
    let desk = web::Data::new(Desk { parcels: Mutex::new(vec![]) });
    HttpServer::new(move || App::new().app_data(desk.clone()).service(one).service(add))
        .bind((&quot;127.0.0.1&quot;, 8080))?
        .run()
        .await
}

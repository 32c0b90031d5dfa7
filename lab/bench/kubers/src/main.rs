//! The operator of the comparison, written with kube-rs. `BENCH_WORK` says what it reconciles:
//! Shops and Pods without writes, or WebApps.

mod probe;
mod shop;
mod webapp;

use std::fmt::Debug;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use probe::Probe;
use shop::Shop;
use webapp::WebApp;

#[cfg(feature = "tuned")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    match std::env::var("BENCH_WORK")?.as_str() {
        "shops" => read_all::<Shop>(client).await,
        "pods" => read_all::<Pod>(client).await,
        "webapps" => run_webapps(client).await,
        other => return Err(format!("BENCH_WORK is {other}: use shops, pods or webapps").into()),
    }
    Ok(())
}

/// Reconciles all objects of a kind and writes nothing.
async fn read_all<K>(client: Client)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    controller(Api::<K>::all(client))
        .shutdown_on_signal()
        .run(
            |object: Arc<K>, probe: Arc<Probe>| async move {
                let version = object.resource_version().unwrap_or_default();
                probe.reconciled(&object.name_any(), &version);
                Ok::<_, kube::Error>(Action::await_change())
            },
            |_, _, _| Action::requeue(Duration::from_secs(5)),
            Arc::new(Probe::from_env()),
        )
        .for_each(|_| ready(()))
        .await;
}

async fn run_webapps(client: Client) {
    let deployments = Api::<Deployment>::all(client.clone());
    webapp_controller(Api::all(client.clone()))
        .owns(deployments, config())
        .shutdown_on_signal()
        .run(
            webapp::reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(5)),
            Arc::new(client),
        )
        .for_each(|_| ready(()))
        .await;
}

/// Returns how objects are listed and watched.
fn config() -> watcher::Config {
    if cfg!(feature = "tuned") {
        watcher::Config::default().streaming_lists()
    } else {
        watcher::Config::default()
    }
}

/// Returns a controller of the objects of an API.
#[cfg(not(feature = "tuned"))]
fn controller<K>(api: Api<K>) -> Controller<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    Controller::new(api, config())
}

/// Returns the controller of WebApps.
#[cfg(not(feature = "tuned"))]
fn webapp_controller(api: Api<WebApp>) -> Controller<WebApp> {
    controller(api)
}

/// Returns a controller of the objects of an API. It keeps them without
/// managedFields.
#[cfg(feature = "tuned")]
fn controller<K>(api: Api<K>) -> Controller<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (reader, writer) = kube::runtime::reflector::store();
    Controller::for_stream(objects(api, writer), reader)
}

/// Returns the controller of WebApps. It is not triggered by changes of their status.
#[cfg(feature = "tuned")]
fn webapp_controller(api: Api<WebApp>) -> Controller<WebApp> {
    use kube::runtime::{WatchStreamExt, predicates};
    let (reader, writer) = kube::runtime::reflector::store();
    let apps = objects(api, writer).predicate_filter(predicates::generation, Default::default());
    Controller::for_stream(apps, reader)
}

/// Returns the objects of an API as they change, and stores them without managedFields.
#[cfg(feature = "tuned")]
fn objects<K>(
    api: Api<K>,
    writer: kube::runtime::reflector::store::Writer<K>,
) -> impl futures::Stream<Item = Result<K, watcher::Error>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    use kube::runtime::WatchStreamExt;
    watcher(api, config())
        .default_backoff()
        .modify(|object: &mut K| object.meta_mut().managed_fields = None)
        .reflect(writer)
        .applied_objects()
}

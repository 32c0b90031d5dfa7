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

/// What a controller needs of a kind.
trait Object:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

/// Which change of an object triggers a reconcile, if the program is tuned.
enum Trigger {
    Change,
    Spec,
}

/// Reconciles all objects of a kind and writes nothing.
async fn read_all<K: Object>(client: Client) {
    controller(Api::<K>::all(client), Trigger::Change)
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
    let probe = Arc::new(Probe::from_env());
    controller(Api::<WebApp>::all(client.clone()), Trigger::Spec)
        .owns(deployments, config())
        .shutdown_on_signal()
        .run(
            move |app: Arc<WebApp>, client| {
                let probe = probe.clone();
                async move {
                    probe.reconciled(&app.name_any(), "");
                    webapp::reconcile(app, client).await
                }
            },
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
fn controller<K: Object>(api: Api<K>, _: Trigger) -> Controller<K> {
    Controller::new(api, config())
}

/// Returns a controller of the objects of an API. It keeps them without managedFields.
#[cfg(feature = "tuned")]
fn controller<K: Object>(api: Api<K>, trigger: Trigger) -> Controller<K> {
    use kube::runtime::{WatchStreamExt, predicates, reflector};
    let (reader, writer) = reflector::store();
    let objects = watcher(api, config())
        .default_backoff()
        .modify(|object: &mut K| object.meta_mut().managed_fields = None)
        .reflect(writer)
        .applied_objects();
    match trigger {
        Trigger::Change => Controller::for_stream(objects, reader),
        Trigger::Spec => {
            let changed = objects.predicate_filter(predicates::generation, Default::default());
            Controller::for_stream(changed, reader)
        }
    }
}

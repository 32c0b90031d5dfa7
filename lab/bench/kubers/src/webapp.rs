//! The WebApp operator: a web application is a Deployment.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::{Api, Client, CustomResource, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The desired state of the application.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "bench.example.com",
    version = "v1",
    kind = "WebApp",
    namespaced,
    status = "WebAppStatus"
)]
pub struct WebAppSpec {
    pub image: String,
    pub replicas: i32,
}

/// The observed state of the application.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebAppStatus {
    pub available_replicas: i32,
    pub ready: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Applies the Deployment of `app`, and the status of `app`.
pub async fn reconcile(app: Arc<WebApp>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let (namespace, name) = (app.namespace().unwrap_or_default(), app.name_any());
    let params = PatchParams::apply("webapp-operator").force();
    let deployments: Api<Deployment> = Api::namespaced((*client).clone(), &namespace);
    let live = deployments
        .patch(&name, &params, &Patch::Apply(deployment(&app)))
        .await?;
    let apps: Api<WebApp> = Api::namespaced((*client).clone(), &namespace);
    let patch = json!({
        "apiVersion": WebApp::api_version(&()),
        "kind": WebApp::kind(&()),
        "status": status(&app, &live),
    });
    apps.patch_status(&name, &params, &Patch::Apply(patch))
        .await?;
    Ok(Action::requeue(Duration::from_secs(5 * 60)))
}

/// Returns the status of `app` whose Deployment is `live`.
fn status(app: &WebApp, live: &Deployment) -> WebAppStatus {
    let observed = live.status.clone().unwrap_or_default();
    let want = app.spec.replicas;
    let updated = observed.updated_replicas.unwrap_or(0);
    let available = observed.available_replicas.unwrap_or(0);
    let ready = observed.observed_generation == live.metadata.generation
        && observed.replicas.unwrap_or(0) == want
        && updated == want
        && available == want;
    let value = if ready { "True" } else { "False" };
    let last_transition_time = app
        .status
        .iter()
        .flat_map(|status| &status.conditions)
        .find(|condition| condition.type_ == "Ready" && condition.status == value)
        .map_or_else(
            || Time(Timestamp::now()),
            |condition| condition.last_transition_time.clone(),
        );
    WebAppStatus {
        available_replicas: available,
        ready,
        conditions: vec![Condition {
            type_: "Ready".into(),
            status: value.into(),
            reason: if ready { "Available" } else { "Progressing" }.into(),
            message: format!("{updated} of {want} pods are updated, {available} available"),
            observed_generation: app.metadata.generation,
            last_transition_time,
        }],
    }
}

/// Returns the desired Deployment of `app`.
fn deployment(app: &WebApp) -> Deployment {
    let labels = Some([("app".to_string(), app.name_any())].into());
    Deployment {
        metadata: ObjectMeta {
            name: app.metadata.name.clone(),
            namespace: app.metadata.namespace.clone(),
            labels: labels.clone(),
            owner_references: app.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..Default::default()
        },
        spec: DeploymentSpec {
            replicas: Some(app.spec.replicas),
            selector: LabelSelector {
                match_labels: labels.clone(),
                ..Default::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels,
                    ..Default::default()
                }),
                spec: Some(PodSpec {
                    containers: vec![Container {
                        name: "web".into(),
                        image: Some(app.spec.image.clone()),
                        ..Default::default()
                    }],
                    ..Default::default()
                }),
            },
            ..Default::default()
        },
        ..Default::default()
    }
}

//! The HTTP routes. A route is a row in [`api`]; its types describe it in the OpenAPI document.

mod body;
mod check;
mod compare;
mod events;
mod export;
mod files;
mod fragments;
mod history;
mod live;
pub mod lookup;
mod messages;
mod metrics;
mod query;
mod result_files;
mod results;
mod runs;
mod selection;
mod sent_file;
mod submit;
mod tables;
mod who;

pub(crate) use events::Events;
pub(crate) use who::secured;

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with, put_with};
use aide::openapi::OpenApi;
use axum::middleware::from_fn_with_state;
use axum::{Json, Router};

use crate::library::history::History;
use crate::problem::Problem;
use crate::shared::Shared;

/// All routes, protected by the guard.
pub fn router(shared: Arc<Shared>) -> Router {
    let mut document = OpenApi::default();
    let routes = api().finish_api(&mut document);
    let text: Arc<str> = crate::openapi::document().into();
    let description =
        axum::routing::get(move || async move { ([("content-type", "application/json")], text.to_string()) });
    routes
        .route("/openapi.json", description)
        // Only for the pages.
        .route("/", axum::routing::get(fragments::list))
        .route("/queue", axum::routing::get(fragments::queue))
        .route("/new", axum::routing::get(fragments::new))
        .route("/runs/{id}/live", axum::routing::get(live::live))
        .fallback(|| async { Problem::new(axum::http::StatusCode::NOT_FOUND, "there is no such path").hint(PATHS) })
        .method_not_allowed_fallback(|| async {
            Problem::new(axum::http::StatusCode::METHOD_NOT_ALLOWED, "the path does not take this method").hint(PATHS)
        })
        .layer(axum::extract::DefaultBodyLimit::max(body::BODY_BYTES))
        .layer(from_fn_with_state(Arc::clone(&shared), who::check))
        .with_state(shared)
}

/// Hint for a wrong path or method.
const PATHS: &str = "`GET /openapi.json` lists the paths with their methods";

/// Description for a submission with several results.
const NEWEST: &str = "Of a submission with several repetitions that of the newest one; the names in `folders` of `GET /runs/{id}` are \
                      ids here, too.";

/// The documented routes.
pub fn api() -> ApiRouter<Arc<Shared>> {
    ApiRouter::new()
        .api_route(
            "/runs",
            post_with(submit::submit, |op| {
                op.id("submit").summary("Submit a run, an experiment, a search for capacity or a choice").description(
                    "The body is YAML or JSON. It is on the disk of the server, and waits for its turn, when the response comes.",
                )
            })
            .get_with(runs::list, |op| {
                op.id("listRuns").summary("List submissions and results, the newest first").description(
                    "Folders of results that were made without the server are listed, too.",
                )
            }),
        )
        .api_route(
            "/runs/{id}",
            get_with(runs::one, |op| op.id("getRun").summary("How far a submission is, or what a folder holds"))
                .delete_with(runs::cancel, |op| {
                    op.id("cancelRun").summary("Cancel a submission").description(
                        "One that waits will not begin. One that is under way ends in order, and what was measured is recorded. In \
                         the response `headline`, `offered_per_s`, `devices` and `note` are `null`.",
                    )
                }),
        )
        .api_route("/runs/{id}/record", get_with(files::record, |op| {
            op.id("getRecord").summary("The record as JSON").description(NEWEST)
        }))
        .api_route("/runs/{id}/report", get_with(files::report, |op| {
            op.id("getReport").summary("The report as a page").description(NEWEST)
        }))
        .api_route("/runs/{id}/table", get_with(files::table, |op| {
            op.id("getTable").summary("A table as CSV").description(NEWEST)
        }))
        .api_route("/runs/{id}/files", get_with(result_files::list, |op| {
            op.id("listFiles").summary("Names of the files of a result").description(NEWEST)
        }))
        .api_route("/runs/{id}/files/{*name}", get_with(result_files::file, |op| {
            op.id("getFile").summary("A file of a result").description(
                "One of those that `GET /runs/{id}/files` names; `name` may have slashes. Reports and tables are drawn from the record, \
                 others are as the run left them.",
            ).response::<200, sent_file::SentFile>()
        }))
        .api_route(
            "/runs/{id}/notes",
            get_with(files::notes, |op| op.id("getNotes").summary("Notes and warnings, as on the command line")),
        )
        .api_route(
            "/runs/{id}/messages",
            get_with(messages::messages, |op| {
                op.id("getMessages").summary("The message log of a run").description(
                    "A row for each message and each subscriber, as it is stored: Parquet, CSV or NDJSON. 404 for a run that was \
                     made without `message_log`.",
                )
            }),
        )
        .api_route(
            "/runs/{id}/events",
            get_with(events::events, |op| {
                op.id("getEvents").summary("What goes on, as server-sent events").description(
                    "From the beginning, then as it happens: progress once a second. Each has a line of \
                     `pubmark run --events` as its data and that line's kind as its name; the last one is `end`, with `state`, and if it failed `error` and `hint`. Each line has an \
                     `id`; a client that sends the newest as `Last-Event-ID` gets those behind it. If there is no such id, or more \
                     than 4 MiB are behind it, the first event is `current`, with `missed: true`, `state` and the newest `progress`, \
                     and the events between are left out.",
                )
            }),
        )
        .api_route("/runs/{id}/note", put_with(results::put_note, |op| {
            op.id("putNote").summary("Save a note and tags of a result").description(
                "They are in `note.json` beside the record, which stays as it was measured. An empty note removes the file.",
            )
        }))
        .api_route(
            "/runs/{id}/results",
            get_with(results::results, |op| op.id("getResults").summary("What a deletion would remove"))
                .delete_with(results::delete, |op| {
                    op.id("deleteResults").summary("Delete results permanently").description(
                        "By the id of a submission, all of its folders and its entry in the list; by the name of a folder, that \
                         folder. What is under way is not deleted: cancel it first.",
                    )
                }),
        )
        .api_route("/compare", get_with(compare::compared, |op| {
            op.id("compare").summary("Runs of one schedule side by side").description(
                "A page, if `text/html` is accepted. Each repetition of a submission is a run of its own. Runs of different \
                 schedules are refused.",
            ).response::<200, Json<compare::Compared>>()
        }))
        .api_route("/history", get_with(history::history, |op| {
            op.id("history").summary("All runs of the configuration of a run, judged one after the other").description(
                "A part of a page, if `text/html` is accepted.",
            ).response::<200, Json<History>>()
        }))
        .api_route("/export", get_with(export::export, |op| {
            op.id("export").summary("Results as an archive that opens without a server").description(
                "A `tar.gz` of the folders, of a submission those of all repetitions, with `index.html`, and with `comparison.html` where they can be compared.",
            )
        }))
        .api_route("/dry-run", post_with(submit::dry_run, |op| {
            op.id("dryRun").summary("Work out what a submission needs and how long it takes, without making it")
        }))
        .api_route("/validate", post_with(submit::validate, |op| {
            op.id("validate").summary("Judge a submission without making it")
        }))
        .api_route("/check", post_with(check::check, |op| {
            op.id("check").summary("Hold a run or an experiment against limits and a baseline")
        }))
        .api_route("/systems", get_with(tables::systems, |op| op.id("listSystems").summary("Systems that can be started")))
        .api_route("/workloads", get_with(tables::workloads, |op| op.id("listWorkloads").summary("Built-in workloads")))
        .api_route("/experiments", get_with(tables::experiments, |op| {
            op.id("listExperiments").summary("Built-in experiments")
        }))
        .api_route("/protocols", get_with(tables::protocols, |op| op.id("listProtocols").summary("What clients can speak")))
        .api_route("/links", get_with(tables::links, |op| op.id("listLinks").summary("Built-in emulated networks")))
        .api_route("/doctor", get_with(tables::doctor, |op| op.id("doctor").summary("Is the machine fit to measure?")))
        .api_route("/metrics", get_with(metrics::metrics, |op| {
            op.id("getMetrics").summary("Figures of the run under way, or of the last one, and of the queue, for Prometheus").description(
                "docs/reference/metrics.md lists them.",
            )
        }))
        .api_route("/nodes", get_with(tables::nodes, |op| {
            op.id("listNodes").summary("Nodes that joined the run under way")
        }))
}

"""Calls a node through the generated client: URL and id of the node are the arguments, what came back is printed as JSON."""

import json
import sys

import penstock_client
from penstock_client.api.pipelines_service_api import PipelinesServiceApi

url, node_id = sys.argv[1:]
configuration = penstock_client.Configuration(host=url)
configuration.access_token = None
pipelines = PipelinesServiceApi(penstock_client.ApiClient(configuration))


def names():
    return [pipeline.name for pipeline in pipelines.get_pipelines(node_id).pipelines]


def failure_of(call):
    """The failure of a call: its HTTP status, and its body as the generated model of an error."""
    try:
        call()
    except penstock_client.ApiException as failure:
        body = type("Body", (), {"data": failure.body})
        return failure.status, pipelines.api_client.deserialize(body, penstock_client.Error)
    raise AssertionError("the call did not fail")


before = names()
SOURCE = {"uniform_traffic_source": {"output": "sent", "interval": 10}}
SINK = {"traffic_sink": {"input": "sent"}}
config = json.dumps({"version": 1, "engine_config": {"pipeline": {"source": SOURCE, "sink": SINK}}})
body = penstock_client.CreatePipelineBody(name="from-python", json_config=config)
created = pipelines.create_pipeline(node_id, create_pipeline_body=body).pipeline
missing_status, missing = failure_of(lambda: pipelines.get_pipeline_by_id(node_id, "none"))
# What the document says itself, the client refuses; a name of spaces is the node's to refuse.
try:
    penstock_client.CreatePipelineBody(name="", json_config=config)
    raise AssertionError("a name of no characters was taken")
except ValueError:
    pass
unnamed = penstock_client.CreatePipelineBody(name=" ", json_config=config)
wrong_status, wrong = failure_of(lambda: pipelines.create_pipeline(node_id, create_pipeline_body=unnamed))

json.dump(
    {
        "before": before,
        "after": names(),
        "created": {"type": type(created).__name__, "id": created.id, "restartPolicy": type(created.restart_policy).__name__},
        "missing": {"status": missing_status, "type": type(missing).__name__, "code": missing.code, "message": missing.message},
        "wrong": {
            "status": wrong_status,
            "code": wrong.code,
            "fields": [violation.field for detail in wrong.details for violation in detail.field_violations],
        },
    },
    sys.stdout,
)

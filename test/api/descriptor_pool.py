"""Loads FileDescriptorProtos, base64 in a JSON list on standard input, as protobuf's runtimes do, and prints what it finds in them."""
import base64
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

pool = descriptor_pool.DescriptorPool()
files = {}
for encoded in json.load(sys.stdin):
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(encoded))
    files[file.name] = file
loaded = set()


def load(name):
    """Adds the file `name` after those that it imports, which the pool demands; it checks all that the file refers to."""
    if name in loaded:
        return
    loaded.add(name)
    for dependency in files[name].dependency:
        load(dependency)
    pool.AddSerializedFile(files[name].SerializeToString())


for name in sorted(files):
    load(name)


def new(name):
    message = pool.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(message)()
    # Before 4.22 a class learns its extensions when the files of the pool are made into classes.
    return message_factory.MessageFactory(pool).GetMessages(sorted(files))[name]()


def options(method):
    """The options of a method as JSON, by the extensions that the files declare."""
    known = new("google.protobuf.MethodOptions")
    known.ParseFromString(method.GetOptions().SerializeToString())
    return json_format.MessageToDict(known, preserving_proto_field_name=True, descriptor_pool=pool)


services = {}
for file in files.values():
    for service in file.service:
        described = pool.FindServiceByName(f"{file.package}.{service.name}")
        services[described.full_name] = {method.name: options(method) for method in described.methods}

node = new("servicegrpc.hub.Node")
json_format.ParseDict(json.loads(sys.argv[1]), node)
print(json.dumps({"services": services, "node": base64.b64encode(node.SerializeToString()).decode()}))

# SPDX-License-Identifier: Apache-2.0
"""Services of clouds that hand out secrets, in the shapes that their documentation gives: AWS (Secrets Manager, Systems Manager, STS,
an instance's metadata), Google (token endpoint, IAM, Secret Manager, metadata) and Azure (login, Key Vault, metadata). AWS's verify
every signature. A host NAME-FAULT.wild.lab.test fails in that way; of a machine's metadata `faults` says which step fails."""
import base64
import json
import ssl
import threading
import time
import urllib.parse

import aws_origin
import credential_service

METADATA = "169.254.169.254"
REGION = "eu-test-1"
GIVEN = ("AKIDGIVEN", "given/secret+0123456789", None)
MACHINE = ("ASIAMACHINE", "machine/secret+0123456789", "machine-session-token/+==")
ROLE = ("ASIAROLE", "role/secret+0123456789", "role-session-token/+==")
IDENTITY, FEDERATED, CLIENT_SECRET = "web-identity-token-0123456789", "federated-token-0123456789", "azure-client-secret&0123"
STS = """<{0}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <{0}Result>
    <AssumedRoleUser><AssumedRoleId>ARO:x</AssumedRoleId><Arn>arn:aws:sts::1:assumed-role/agent/x</Arn></AssumedRoleUser>
    <Credentials>
      <AccessKeyId>{1}</AccessKeyId>
      <SecretAccessKey>{2}</SecretAccessKey>
      <SessionToken>{3}</SessionToken>
      <Expiration>{4}</Expiration>
    </Credentials>
  </{0}Result>
  <ResponseMetadata><RequestId>c6104cbe</RequestId></ResponseMetadata>
</{0}Response>
"""
ERROR = "<ErrorResponse><Error><Type>Sender</Type><Code>{}</Code><Message>{}</Message></Error><RequestId>c6104cbe</RequestId></ErrorResponse>"


class Handler(credential_service.Handler):
    def do_PUT(self):
        self.answer()

    def answer(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        service, host = self.server.service, self.headers["Host"].partition(":")[0]
        self.step = self.metadata_step() if host == METADATA else host.partition("-")[0]
        with service.lock:
            service.asked.append({"step": self.step, "method": self.command, "path": self.path, "host": self.headers["Host"], "body": self.body.decode(),
                                  "headers": dict(self.headers.items())})
        fault = service.faults.get(self.step) if host == METADATA else host.partition(".")[0].partition("-")[2]
        if fault and hasattr(self, "fault_" + fault):
            getattr(self, "fault_" + fault)()
            return
        try:
            status, answer = getattr(self, "step_" + self.step.replace("-", "_"))()
        except aws_origin.Wrong as e:
            service.wrong.append(str(e))
            status, answer = 403, {"__type": "InvalidSignatureException", "message": "the signature"}
        self.send(status, (answer if isinstance(answer, str) else json.dumps(answer)).encode())

    def metadata_step(self):
        if self.path == "/latest/api/token":
            return "imds-token"
        if self.path.startswith("/computeMetadata/"):
            return "gcp-metadata"
        if self.path.startswith("/metadata/identity/"):
            return "azure-metadata"
        return "imds-role" if self.path.endswith("/") else "imds-keys"

    def fault_throttled(self):
        if self.step == "sts":
            self.send(400, ERROR.format("Throttling", "Rate exceeded").encode())
        else:
            self.send(400, b'{"__type": "com.amazon.coral.availability#ThrottlingException", "message": "Rate exceeded"}')

    def fault_denied(self):
        if self.step == "sts":
            self.send(403, ERROR.format("AccessDenied", "User is not authorized to perform: sts:AssumeRole").encode())
        elif self.step in ("secretsmanager", "ssm"):
            self.send(400, b'{"__type": "AccessDeniedException", "Message": "User is not authorized"}')
        else:
            self.send(403, b'{"error": {"code": 403, "message": "Permission denied on resource", "status": "PERMISSION_DENIED"}}')

    def fault_xmltwice(self):
        self.send(200, (STS * 2).format("AssumeRole", *ROLE, "2030-01-01T00:00:00Z").encode())

    def fault_entity(self):
        self.send(200, STS.format("AssumeRole", "ASIA&amp;x", "secret", "token", "").encode())

    def fault_lines(self):
        self.send(200, STS.format("AssumeRole", ROLE[0], ROLE[1], "one\r\nX-Injected: two", "").encode() if self.step == "sts"
                  else b'{"access_token": "one\\r\\nX-Injected: two"}')

    def fault_binary(self):
        self.send(200, b'{"Name": "x", "SecretBinary": "AAEC"}')

    def fault_base64(self):
        self.send(200, b'{"payload": {"data": "%%%%"}}')

    def fault_path(self):
        self.send(200, b"../../evil?x")

    def fault_wrongtype(self):
        self.send(200, b'{"SecretString": 7, "Parameter": 7, "payload": 7, "value": 7, "access_token": 7, "accessToken": 7, "AccessKeyId": 7}')

    # --- AWS ---

    def verified(self, *keys):
        request = aws_origin.Request(self.command, self.path, list(self.headers.items()), keys[0])
        request.read()
        for key in keys:
            if key[0] == request.key_id:
                request.keys = key
        request.verify(self.body)
        if (request.region, request.service) != (REGION, self.step):
            raise aws_origin.Wrong(f"signed for {request.scope}")
        return request.key_id

    def ends(self):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.server.service.expires_in))

    def step_imds_token(self):
        return (200, "imds-token-0123") if self.command == "PUT" and self.headers.get("X-aws-ec2-metadata-token-ttl-seconds") == "60" else (400, "")

    def step_imds_role(self):
        return (200, "agent-role\n") if self.headers.get("X-aws-ec2-metadata-token") == "imds-token-0123" else (401, "")

    def step_imds_keys(self):
        if self.headers.get("X-aws-ec2-metadata-token") != "imds-token-0123" or not self.path.endswith("/agent-role"):
            return 401, ""
        return 200, {"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": MACHINE[0], "SecretAccessKey": MACHINE[1], "Token": MACHINE[2], "Expiration": self.ends()}

    def step_sts(self):
        form = {k: v[0] for k, v in urllib.parse.parse_qs(self.body.decode()).items()}
        if form["Action"] == "AssumeRoleWithWebIdentity":
            if form["WebIdentityToken"] != IDENTITY or "Authorization" in self.headers:
                return 400, ERROR.format("InvalidIdentityToken", "no such identity")
        else:
            self.verified(GIVEN, MACHINE)
        if not form["RoleArn"].endswith("/agent") or form["Version"] != "2011-06-15":
            return 403, ERROR.format("AccessDenied", "not that role")
        return 200, STS.format(form["Action"], *ROLE, self.ends())

    def step_secretsmanager(self):
        key = self.verified(GIVEN, MACHINE, ROLE)
        asked = json.loads(self.body)
        if self.headers["X-Amz-Target"] != "secretsmanager.GetSecretValue" or asked["SecretId"] == "none":
            return 400, {"__type": "ResourceNotFoundException", "Message": "Secrets Manager can't find the specified secret."}
        text = json.dumps({"user": "agent", "api": f"field-of-{key}"}) if asked["SecretId"] == "json" else f"{asked.get('VersionStage', 'secret')}-of-{key}"
        return 200, {"ARN": "arn:aws:secretsmanager:x", "Name": "x", "VersionId": "1", "SecretString": text}

    def step_ssm(self):
        key = self.verified(GIVEN, MACHINE, ROLE)
        asked = json.loads(self.body)
        if self.headers["X-Amz-Target"] != "AmazonSSM.GetParameter" or asked != {"Name": "/agent/api", "WithDecryption": True}:
            return 400, {"__type": "ParameterNotFound"}
        return 200, {"Parameter": {"Name": "/agent/api", "Type": "SecureString", "Value": f"parameter-of-{key}", "Version": 1}}

    # --- Google ---

    def step_gcp(self):
        """The token endpoint."""
        form = {k: v[0] for k, v in urllib.parse.parse_qs(self.body.decode()).items()}
        claims = json.loads(base64.urlsafe_b64decode(form["assertion"].split(".")[1] + "=="))
        self.server.service.claims.append(claims)
        return 200, {"access_token": "gcp-token-of-key", "token_type": "Bearer", "expires_in": self.server.service.expires_in}

    def step_gcp_metadata(self):
        if self.headers.get("Metadata-Flavor") != "Google":
            return 403, ""
        return 200, {"access_token": "gcp-token-of-machine", "token_type": "Bearer", "expires_in": 3599}

    def step_iam(self):
        asked = json.loads(self.body)
        if self.path != "/v1/projects/-/serviceAccounts/other@p.iam.test:generateAccessToken" or asked["lifetime"] != "3600s":
            return 404, {"error": {"code": 404, "message": "no such account"}}
        return 200, {"accessToken": "gcp-token-of-other-by-" + self.headers["Authorization"].rpartition("-")[2], "expireTime": self.ends()}

    def step_secretmanager(self):
        if self.path != "/v1/projects/p-1/secrets/api/versions/" + ("7:access" if "7" in self.path else "latest:access"):
            return 404, {"error": {"code": 404, "message": "Secret [projects/1/secrets/none] not found", "status": "NOT_FOUND"}}
        secret = "secret-for-" + self.headers["Authorization"].removeprefix("Bearer ")
        return 200, {"name": "projects/1/secrets/api/versions/1", "payload": {"data": base64.b64encode(secret.encode()).decode(), "dataCrc32c": "1"}}

    # --- Azure ---

    def step_login(self):
        form = {k: v[0] for k, v in urllib.parse.parse_qs(self.body.decode()).items()}
        if self.path != "/tenant-1/oauth2/v2.0/token" or form["scope"] != "https://vault.azure.net/.default" or form["client_id"] != "client-1":
            return 400, {"error": "invalid_request", "error_description": "AADSTS90002: no such tenant"}
        if form.get("client_assertion") == FEDERATED:
            return 200, {"token_type": "Bearer", "expires_in": 3599, "access_token": "azure-token-federated"}
        if form.get("client_secret") == CLIENT_SECRET:
            return 200, {"token_type": "Bearer", "expires_in": 3599, "access_token": "azure-token-secret"}
        return 401, {"error": "invalid_client", "error_description": f"AADSTS7000215: Invalid client secret provided: {form.get('client_secret')}"}

    def step_azure_metadata(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        if self.headers.get("Metadata") != "true" or query.get("resource") != ["https://vault.azure.net"]:
            return 400, {"error": "invalid_request"}
        return 200, {"access_token": "azure-token-machine" + "".join("-" + c for c in query.get("client_id", [])), "expires_in": "3599"}

    def step_keyvault(self):
        path, _, query = self.path.partition("?")
        if query != "api-version=7.4" or path not in ("/secrets/api", "/secrets/api/v7"):
            return 404, {"error": {"code": "SecretNotFound", "message": "A secret with (name/id) none was not found in this key vault."}}
        value = self.headers["Authorization"].removeprefix("Bearer ") + path.removeprefix("/secrets/api").replace("/", "-")
        return 200, {"value": "secret-for-" + value, "id": "https://x/secrets/api/1", "attributes": {"enabled": True}}


class Service:
    """Listens with the lab's certificate, and plainly where a machine asks for its identity."""

    def __init__(self, address, port, folder):
        self.asked, self.wrong, self.claims, self.faults = [], [], [], {}
        self.lock, self.release, self.expires_in = threading.Lock(), threading.Event(), 3600
        self.servers = [credential_service.Server(a, Handler) for a in ((address, port), (METADATA, 80))]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/server.pem", f"{folder}/server.key")
        self.servers[0].socket = context.wrap_socket(self.servers[0].socket, server_side=True)
        for server in self.servers:
            server.service = self
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def close(self):
        self.release.set()
        for server in self.servers:
            server.shutdown()
            server.server_close()

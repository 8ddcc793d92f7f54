/* SPDX-License-Identifier: Apache-2.0 */
/* Every message (those of keeper, fetch and token: test_message_keeper.c), and the bounds of single
 * fields, each one beyond its limit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "message_fixture.h"

static void head_is_strict(void **state)
{
	struct message_head head;
	struct reader body;
	size_t n = message_empty(wire_bytes, sizeof(wire_bytes), MESSAGE_KEEPER_READY, ID);

	(void)state;
	assert_int_equal(n, HEAD_BYTES);
	assert_int_equal(message_open(wire_bytes, n, &head, &body), 0);
	assert_int_equal(head.type, MESSAGE_KEEPER_READY);
	assert_true(reader_done(&body));
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(message_open(wire_bytes, cut, &head, &body), -EBADMSG);
	assert_int_equal(message_empty(wire_bytes, n - 1, MESSAGE_KEEPER_READY, ID), 0);
	assert_int_equal(message_open(wire_bytes, MESSAGE_BYTES_MAX + 1, &head, &body), -EBADMSG);
	wire_bytes[0] = wire_bytes[1] = 0;
	assert_int_equal(message_open(wire_bytes, n, &head, &body), -EBADMSG);
	wire_bytes[1] = MESSAGE_TYPE_COUNT;
	assert_int_equal(message_open(wire_bytes, n, &head, &body), -EBADMSG);
	wire_bytes[0] = 0x80;
	wire_bytes[1] = 1;
	assert_int_equal(message_open(wire_bytes, n, &head, &body), -EBADMSG);
}

static void text(void **state)
{
	struct message_text m = {SLICE("no\nmore")};

	(void)state;
	ROUNDTRIP(text, &m, NOTHING);
	m.text = longer(MESSAGE_TEXT_MAX + 1);
	REFUSES_TO_ENCODE(text, &m);
	m.text = longer(300);
	REFUSES_BYTE(text, &m, HEAD_BYTES, 0x7f);
}

static void recorder(void **state)
{
	struct message_recorder_start start = {SLICE("/var/log/x"), 2};
	struct message_recorder_ring ring = {1, UINT64_MAX};
	struct message_recorder_sandbox m = {.sandbox_id = 1,
	        .sandbox = SLICE("box"),
	        .policy = SLICE("p"),
	        .fingerprint = SLICE("0123456789abcdef"),
	        .gate4 = ip4(1),
	        .gate6 = ip6(1),
	        .socket = SLICE("/run/out.sock"),
	        .has_packets = true};
	char longer[MESSAGE_SOCKET_PATH_MAX + 1];
	struct message_sandbox id = {9, 1u << 20};
	struct message_summary summary = {.allowed = 1, .lines = UINT64_MAX, .unusual_count = 2};

	(void)state;
	summary.unusual[0].what = SLICE("POST https://paste.example/");
	summary.unusual[0].count = 4;
	ROUNDTRIP(recorder_start, &start, NOTHING);
	ROUNDTRIP(recorder_sandbox, &m, NOTHING);
	ROUNDTRIP(recorder_ring, &ring, NOTHING);
	memset(longer, 'x', sizeof(longer));
	m.socket = slice_of(longer, MESSAGE_SOCKET_PATH_MAX);
	ROUNDTRIP(recorder_sandbox, &m, NOTHING);
	m.socket.n++;
	REFUSES_TO_ENCODE(recorder_sandbox, &m);
	m.socket.n--;
	m.gate6.family = 5;
	REFUSES_TO_ENCODE(recorder_sandbox, &m);
	ROUNDTRIP(sandbox, &id, NOTHING);
	ROUNDTRIP(summary, &summary, NOTHING);
	summary.unusual_count = MESSAGE_UNUSUAL_MAX + 1;
	REFUSES_TO_ENCODE(summary, &summary);
	summary.unusual_count = ((size_t)1 << 32) + 1; /* not cut to 1 on its way */
	REFUSES_TO_ENCODE(summary, &summary);
}

static void recorder_event(void **state)
{
	struct message_recorder_event m = {5, SLICE("event bytes")}, out;
	struct reader body;
	size_t n =
	        message_recorder_event_encode(wire_bytes, sizeof(wire_bytes), MESSAGE_STOP, ID, &m);

	(void)state;
	assert_int_equal(n, HEAD_BYTES + 8 + m.event.n);
	open_body(n, &body);
	assert_int_equal(message_recorder_event_decode(&body, &out), 0);
	assert_true(out.sandbox_id == 5 && slice_equals(out.event, m.event));
	open_body(HEAD_BYTES + 8, &body);
	assert_int_equal(message_recorder_event_decode(&body, &out), -EBADMSG);
	open_body(HEAD_BYTES + 7, &body);
	assert_int_equal(message_recorder_event_decode(&body, &out), -EBADMSG);
	open_body(HEAD_BYTES + 8 + EVENT_BYTES_MAX + 1, &body);
	assert_int_equal(message_recorder_event_decode(&body, &out), -EBADMSG);
	m.event.n = 0;
	REFUSES_TO_ENCODE(recorder_event, &m);
}

static void session(void **state)
{
	struct message_run_start start = {.name = SLICE("n"),
	        .policy_path = SLICE("/p"),
	        .directory = SLICE("/"),
	        .user_id = 1000,
	        .group_id = 1000,
	        .observe = true,
	        .shared_dns_port = 7653,
	        .shared_udp_count = 2,
	        .shared_udp_ports = {123, 65535},
	        .log_level = 1,
	        .variable_count = 2,
	        .variables = {{SLICE("repo"), SLICE("acme/site")}, {SLICE("b"), SLICE("c")}}};
	struct message_names names = {2, {SLICE("GITHUB_TOKEN"), SLICE("B")}};
	struct message_role role = {2, 77, SLICE("the keeper"), SLICE("uid: 61184\n")};
	struct message_run_ready ready = {.sandbox = SLICE("n"),
	        .gate4 = ip4(1),
	        .gate6 = ip6(1),
	        .proxy_port = 3128,
	        .root_pem = SLICE("pem"),
	        .env_count = 1};
	struct message_status status = {-9}, out;
	struct reader body;

	(void)state;
	ROUNDTRIP(run_start, &start, NOTHING);
	start.policy_path = SLICE("/p\0/etc/shadow");
	REFUSES_TO_ENCODE(run_start, &start);
	start.policy_path = longer(MESSAGE_PATH_MAX + 1);
	REFUSES_TO_ENCODE(run_start, &start);
	start.policy_path = SLICE("/p");
	start.variables[1].value = SLICE("");
	REFUSES_TO_ENCODE(run_start, &start);
	start.variables[1].value = longer(POLICY_VARIABLE_VALUE_MAX + 1);
	REFUSES_TO_ENCODE(run_start, &start);
	start.variables[1].value = SLICE("c");
	start.variable_count = POLICY_VARIABLES_MAX + 1;
	REFUSES_TO_ENCODE(run_start, &start);
	start.variable_count = 0;
	start.shared_udp_count = MESSAGE_SHARED_UDP_MAX + 1;
	REFUSES_TO_ENCODE(run_start, &start);
	ROUNDTRIP(names, &names, NOTHING);
	names.names[1] = SLICE("A=B");
	REFUSES_TO_ENCODE(names, &names);
	names.names[1] = SLICE("");
	REFUSES_TO_ENCODE(names, &names);
	names.count = MESSAGE_ENV_MAX + 1;
	REFUSES_TO_ENCODE(names, &names);
	ROUNDTRIP(role, &role, NOTHING);
	role.text = SLICE("uid: 1\0");
	REFUSES_TO_ENCODE(role, &role);
	role.text = longer(MESSAGE_TEXT_MAX + 1);
	REFUSES_TO_ENCODE(role, &role);
	role.text = SLICE("");
	role.name = SLICE("");
	REFUSES_TO_ENCODE(role, &role);
	role.name = longer(MESSAGE_ROLE_NAME_MAX + 1);
	REFUSES_TO_ENCODE(role, &role);
	ready.env[0].name = SLICE("GITHUB_TOKEN");
	ready.env[0].value = SLICE("ghp_vethguard");
	ROUNDTRIP(run_ready, &ready, NOTHING);
	ready.file_count = 2;
	ready.files[0] = SLICE("/etc/vethguard/secrets/key");
	ready.files[1] = longer(MESSAGE_PATH_MAX);
	ROUNDTRIP(run_ready, &ready, NOTHING);
	ready.files[1] = longer(MESSAGE_PATH_MAX + 1);
	REFUSES_TO_ENCODE(run_ready, &ready);
	ready.files[1] = SLICE("");
	REFUSES_TO_ENCODE(run_ready, &ready);
	ready.files[1] = SLICE("/a\0b");
	REFUSES_TO_ENCODE(run_ready, &ready);
	ready.file_count = MESSAGE_ENV_MAX + 1;
	REFUSES_TO_ENCODE(run_ready, &ready);
	ready.file_count = 0;
	ready.watched.count = 2;
	ready.watched.paths[0] = SLICE("/policy/agent.yaml");
	ready.watched.paths[1] = longer(MESSAGE_PATH_MAX);
	ROUNDTRIP(run_ready, &ready, NOTHING);
	ready.watched.paths[1] = longer(MESSAGE_PATH_MAX + 1);
	REFUSES_TO_ENCODE(run_ready, &ready);
	ready.watched.paths[1] = SLICE("");
	REFUSES_TO_ENCODE(run_ready, &ready);
	ready.watched.count = MESSAGE_WATCHED_MAX + 1;
	REFUSES_TO_ENCODE(run_ready, &ready);
	ready.file_count = 0;
	ready.sandbox = SLICE("");
	REFUSES_TO_ENCODE(run_ready, &ready);
	ROUNDTRIP(status, &status, NOTHING);
	open_body(message_status_encode(wire_bytes, sizeof(wire_bytes), MESSAGE_STOP, ID, &status),
	        &body);
	assert_int_equal(message_status_decode(&body, &out), 0);
	assert_int_equal(out.status, -9);
}

static void fill_start(struct message_worker_start *m, struct config_host *hosts, size_t host_count)
{
	*m = (struct message_worker_start){.sandbox = SLICE("box"),
	        .sandbox_id = 3,
	        .generation = 4,
	        .gate4 = ip4(1),
	        .gate6 = ip6(1),
	        .pool4 = {{4, {198, 18, 0, 0}}, 15},
	        .pool6 = {{6, {0xfd, 0x76}}, 48},
	        .proxy_port = 3128,
	        .server_count = 1,
	        .host_count = host_count,
	        .hosts = hosts,
	        .permit_count = 1,
	        .log_level = 3,
	        .placeholder_count = 1,
	        .listener_count = 2};
	m->servers[0] = (struct config_server){ip4(9), 53};
	m->permit[0] = (struct ip_prefix){{4, {10}}, 8};
	m->egress = (struct config_egress){.proxy_port = 3128,
	        .proxy_host = "p.example",
	        .resolve_local = true,
	        .interface = "eth0",
	        .address4 = ip4(7),
	        .address6 = ip6(7)};
	m->egress_pair = SLICE("user:word");
	m->limits.connections = 77;
	m->limits.blocked_mints_per_min = 78;
	m->limits.connections_per_s = 81;
	m->limits.packet_copies_per_s = 82;
	m->limits.udp_datagrams_per_s = 83;
	m->limits.refusals_per_s = 84;
	m->timeouts.hello_ms = 79;
	m->timeouts.udp_idle_ms = 80;
	m->placeholders[0].text = SLICE("vethguard-x-00");
	m->listeners[1].kind = MESSAGE_LISTEN_REWRITTEN;
	m->listeners[1].port = 123;
	m->listeners[1].cid = 0xfffffffe;
}

static void worker_start(void **state)
{
	struct config_host hosts[2] = {{"api.example", {4, {192, 0, 2, 1}}}, {"b.example", {0}}};
	struct message_worker_start m, out;
	struct reader body;

	(void)state;
	fill_start(&m, hosts, 2);
	hosts[1].address = ip6(9);
	ROUNDTRIP(worker_start, &m, message_worker_start_fini);
	open_body(message_worker_start_encode(wire_bytes, sizeof(wire_bytes), MESSAGE_STOP, ID, &m),
	        &body);
	assert_int_equal(message_worker_start_decode(&body, &out), 0);
	assert_string_equal(out.hosts[0].name, "api.example");
	assert_string_equal(out.egress.proxy_host, "p.example");
	assert_string_equal(out.egress.interface, "eth0");
	assert_int_equal(out.egress.address4.family, 4);
	assert_int_equal(out.egress.address6.family, 6);
	assert_int_equal(out.egress.proxy_port, 3128);
	assert_true(out.egress.resolve_local);
	assert_int_equal(out.egress_pair.n, 9);
	assert_int_equal(out.limits.connections, 77);
	assert_int_equal(out.limits.blocked_mints_per_min, 78);
	assert_int_equal(out.limits.connections_per_s, 81);
	assert_int_equal(out.limits.packet_copies_per_s, 82);
	assert_int_equal(out.limits.udp_datagrams_per_s, 83);
	assert_int_equal(out.limits.refusals_per_s, 84);
	assert_int_equal(out.timeouts.udp_idle_ms, 80);
	assert_int_equal(out.listeners[1].kind, MESSAGE_LISTEN_REWRITTEN);
	assert_int_equal(out.listeners[1].cid, 0xfffffffe);
	message_worker_start_fini(&out);
	assert_null(out.hosts);
	message_worker_start_fini(&out);
}

static void worker_start_refuses(void **state)
{
	struct config_host hosts[1] = {{"api.example", {4, {192, 0, 2, 1}}}};
	struct message_worker_start m;

	(void)state;
	fill_start(&m, hosts, 1);
	m.listeners[1].kind = MESSAGE_LISTENER_KINDS;
	REFUSES_TO_ENCODE(worker_start, &m);
	fill_start(&m, hosts, 1);
	m.listener_count = MESSAGE_LISTENERS_MAX + 1;
	REFUSES_TO_ENCODE(worker_start, &m);
	fill_start(&m, hosts, 1);
	m.permit[0].bits = 33;
	REFUSES_TO_ENCODE(worker_start, &m);
	m.permit[0].bits = 4; /* 10.0.0.0/4 has host bits */
	REFUSES_TO_ENCODE(worker_start, &m);
	fill_start(&m, hosts, 1);
	m.placeholders[0].credential = POLICY_CREDENTIALS_MAX;
	REFUSES_TO_ENCODE(worker_start, &m);
	fill_start(&m, hosts, 1);
	m.egress.address4 = ip6(1);
	REFUSES_TO_ENCODE(worker_start, &m);
	fill_start(&m, hosts, 1);
	m.egress.address6 = ip4(1);
	REFUSES_TO_ENCODE(worker_start, &m);
	fill_start(&m, hosts, 1);
	hosts[0].name[0] = 0;
	REFUSES_TO_ENCODE(worker_start, &m);
}

/* A count that the bytes cannot hold takes no memory and is refused. */
static void worker_start_host_count_beyond_bytes(void **state)
{
	struct config_host hosts[1] = {{"h", {0}}};
	struct message_worker_start m, out;
	struct reader body;
	size_t n;

	(void)state;
	fill_start(&m, hosts, 1);
	n = message_worker_start_encode(wire_bytes, sizeof(wire_bytes), MESSAGE_STOP, ID, &m);
	size_t at = HEAD_BYTES + 4 + 3 + 8 + 8 + 5 + 17 + 6 + 18 + 2 + 4 + 7;
	assert_int_equal(wire_bytes[at + 3], 1);
	assert_int_equal(wire_bytes[at + 8], 'h');
	wire_bytes[at + 2] = 0x04; /* 1024 */
	wire_bytes[at + 3] = 0;
	open_body(n, &body);
	assert_int_equal(message_worker_start_decode(&body, &out), -EBADMSG);
	assert_null(out.hosts);
	wire_bytes[at + 3] = 1; /* 1025 */
	open_body(n, &body);
	assert_int_equal(message_worker_start_decode(&body, &out), -EBADMSG);
	assert_null(out.hosts);
}

static void upgrade_steps(void **state)
{
	struct message_upgrade m = {MESSAGE_UPGRADE_FAILS, SLICE("its policy is gone")};

	(void)state;
	ROUNDTRIP(upgrade, &m, NOTHING);
	m.text = longer(MESSAGE_TEXT_MAX);
	ROUNDTRIP(upgrade, &m, NOTHING);
	m.text = longer(MESSAGE_TEXT_MAX + 1);
	REFUSES_TO_ENCODE(upgrade, &m);
}

static void worker_orders(void **state)
{
	struct message_worker_pause pause = {MESSAGE_PAUSE_OPERATOR, SLICE("by hand")};
	struct message_worker_resume resume = {MESSAGE_PAUSE_OPERATOR};
	struct message_worker_retire retire = {7};

	(void)state;
	ROUNDTRIP(worker_pause, &pause, NOTHING);
	REFUSES_BYTE(worker_pause, &pause, HEAD_BYTES + 3, MESSAGE_PAUSE_OPERATOR + 1);
	ROUNDTRIP(worker_resume, &resume, NOTHING);
	REFUSES_BYTE(worker_resume, &resume, HEAD_BYTES + 3, MESSAGE_PAUSE_OPERATOR + 1);
	ROUNDTRIP(worker_retire, &retire, NOTHING);
	pause.text = longer(MESSAGE_TEXT_MAX);
	ROUNDTRIP(worker_pause, &pause, NOTHING);
	pause.text = longer(MESSAGE_TEXT_MAX + 1);
	REFUSES_TO_ENCODE(worker_pause, &pause);
}

/* Each figure comes back in its own place. */
static void worker_reports(void **state)
{
	struct message_worker_retired retired = {1, 2, 3};
	struct message_worker_stats stats, decoded;
	uint64_t figures[sizeof(stats) / sizeof(uint64_t)];
	struct reader body;
	size_t n;

	(void)state;
	ROUNDTRIP(worker_retired, &retired, NOTHING);
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		figures[i] = ((uint64_t)i + 1) << 33;
	memcpy(&stats, figures, sizeof(stats));
	ROUNDTRIP(worker_stats, &stats, NOTHING);
	n = message_worker_stats_encode(wire_bytes, sizeof(wire_bytes), MESSAGE_STOP, ID, &stats);
	open_body(n, &body);
	assert_int_equal(message_worker_stats_decode(&body, &decoded), 0);
	assert_memory_equal(&decoded, &stats, sizeof(stats));
}

static void exposed_ports(void **state)
{
	struct message_listen listen = {8080};
	struct message_reach reach = {8080, MESSAGE_REACH_MAX};
	struct message_reached reached = {8080, ip6(2), SLICE("no route to host")};

	(void)state;
	ROUNDTRIP(listen, &listen, NOTHING);
	ROUNDTRIP(reach, &reach, NOTHING);
	ROUNDTRIP(reached, &reached, NOTHING);
	reached.address = ip4(2);
	reached.error = SLICE("");
	ROUNDTRIP(reached, &reached, NOTHING);
	reached.error = longer(MESSAGE_TEXT_MAX + 1);
	REFUSES_TO_ENCODE(reached, &reached);
	reached = (struct message_reached){0};
	REFUSES_TO_ENCODE(reached, &reached);
	listen.port = 0;
	REFUSES_TO_ENCODE(listen, &listen);
	reach.count++;
	REFUSES_TO_ENCODE(reach, &reach);
	reach.count = 0;
	REFUSES_TO_ENCODE(reach, &reach);
	reach = (struct message_reach){0, 1};
	REFUSES_TO_ENCODE(reach, &reach);
	listen.port = 1;
	REFUSES_BYTE(listen, &listen, HEAD_BYTES + 1, 0);
	reach.port = 1;
	REFUSES_BYTE(reach, &reach, HEAD_BYTES + 1, 0);
	REFUSES_BYTE(reach, &reach, HEAD_BYTES + 5, 0);
	REFUSES_BYTE(reach, &reach, HEAD_BYTES + 5, MESSAGE_REACH_MAX + 1);
}

static void calls(void **state)
{
	struct message_call call = {SLICE("one"), 8080};
	struct message_visit visit = {8080, SLICE("two"), SLICE("team=search\nx=y\n")};

	(void)state;
	ROUNDTRIP(call, &call, NOTHING);
	ROUNDTRIP(visit, &visit, NOTHING);
	visit.labels = SLICE("");
	ROUNDTRIP(visit, &visit, NOTHING);
	call.port = visit.port = 0;
	REFUSES_TO_ENCODE(call, &call);
	REFUSES_TO_ENCODE(visit, &visit);
	call.port = visit.port = 1;
	call.sandbox = visit.sandbox = SLICE("");
	REFUSES_TO_ENCODE(call, &call);
	REFUSES_TO_ENCODE(visit, &visit);
	call.sandbox = longer(POLICY_HOST_MAX + 1);
	visit.sandbox = longer(MESSAGE_NAME_MAX + 1);
	REFUSES_TO_ENCODE(call, &call);
	REFUSES_TO_ENCODE(visit, &visit);
	call.sandbox = visit.sandbox = SLICE("a\0b");
	REFUSES_TO_ENCODE(call, &call);
	REFUSES_TO_ENCODE(visit, &visit);
	visit.sandbox = SLICE("two");
	visit.labels = longer(MESSAGE_LABELS_MAX + 1);
	REFUSES_TO_ENCODE(visit, &visit);
}

static void gateway_signed(void **state)
{
	static struct message_gateway_signer signer = {.index = 1,
	        .count = 2,
	        .issuer = {"https://a", 9},
	        .audience_count = 1,
	        .audiences = {{"b", 1}},
	        .algorithms = 7,
	        .lifetime_s = 60,
	        .key_count = 2,
	        .keys = {{CONFIG_ES256, {"one", 3}, {"bytes", 5}, 0},
	                {CONFIG_RS256, {"", 0}, {"n", 1}, 65537}}};
	struct message_gateway_token token = {ip6(1), SLICE("a.b.c")};
	struct message_gateway_verdict verdict = {MESSAGE_TOKEN_ACCEPTED, 7, 1790000000};

	(void)state;
	ROUNDTRIP(gateway_signer, &signer, NOTHING);
	signer.keys[1].bytes = longer(MESSAGE_PUBLIC_KEY_MAX);
	signer.keys[1].id = longer(MESSAGE_KEY_ID_MAX);
	ROUNDTRIP(gateway_signer, &signer, NOTHING);
	signer.keys[1].bytes = longer(MESSAGE_PUBLIC_KEY_MAX + 1);
	REFUSES_TO_ENCODE(gateway_signer, &signer);
	signer.keys[1].bytes = SLICE("");
	REFUSES_TO_ENCODE(gateway_signer, &signer);
	signer.key_count = 1;
	signer.keys[0].id = longer(MESSAGE_KEY_ID_MAX + 1);
	REFUSES_TO_ENCODE(gateway_signer, &signer);
	signer.keys[0].id = SLICE("");
	signer.keys[0].algorithm = CONFIG_ALGORITHM_COUNT;
	REFUSES_TO_ENCODE(gateway_signer, &signer);
	signer.key_count = MESSAGE_KEY_SET_MAX + 1;
	REFUSES_TO_ENCODE(gateway_signer, &signer);
	signer.key_count = 0;
	signer.index = 2;
	REFUSES_TO_ENCODE(gateway_signer, &signer);
	signer.index = 0;
	signer.audience_count = CONFIG_AUDIENCES_MAX + 1;
	REFUSES_TO_ENCODE(gateway_signer, &signer);
	signer.audience_count = 0;
	signer.lifetime_s = 0;
	REFUSES_TO_ENCODE(gateway_signer, &signer);
	signer.lifetime_s = 1;
	signer.issuer = longer(CONFIG_CLAIM_VALUE_MAX + 1);
	REFUSES_TO_ENCODE(gateway_signer, &signer);
	signer.count = CONFIG_SIGNERS_MAX + 1;
	REFUSES_TO_ENCODE(gateway_signer, &signer);
	signer = (struct message_gateway_signer){.count = 0};
	ROUNDTRIP(gateway_signer, &signer, NOTHING);
	ROUNDTRIP(gateway_token, &token, NOTHING);
	token.text = longer(MESSAGE_SIGNED_TOKEN_MAX + 1);
	REFUSES_TO_ENCODE(gateway_token, &token);
	token.text = SLICE("");
	REFUSES_TO_ENCODE(gateway_token, &token);
	token = (struct message_gateway_token){(struct ip){0}, SLICE("a")};
	REFUSES_TO_ENCODE(gateway_token, &token);
	ROUNDTRIP(gateway_verdict, &verdict, NOTHING);
	REFUSES_BYTE(gateway_verdict, &verdict, HEAD_BYTES, MESSAGE_VERDICTS);
	verdict = (struct message_gateway_verdict){MESSAGE_TOKEN_LATER, 0, 0};
	ROUNDTRIP(gateway_verdict, &verdict, NOTHING);
}

static void gateway(void **state)
{
	struct message_gateway_start start = {.log_level = 2,
	        .has_certificate = true,
	        .client_certificates = true,
	        .unauthenticated = 7,
	        .unauthenticated_per_address = 1,
	        .handshake_ms = 100,
	        .listener_count = CONFIG_GATEWAY_LISTENERS_MAX,
	        .listener_kind = {CONFIG_GATEWAY_TLS, CONFIG_GATEWAY_PLAIN,
	                CONFIG_GATEWAY_TRANSPARENT},
	        .base_count = 2,
	        .bases = {{SLICE("a.test"), SLICE("b.test"), true},
	                {SLICE("c.test"), SLICE("d.test:8080"), false}},
	        .balancer_count = 2,
	        .balancers = {{ip4(0), 24}, {ip6(0), 64}}};
	struct message_gateway_session session = {.sandbox_id = 9,
	        .token_hash = longer(MESSAGE_TOKEN_HASH_BYTES),
	        .from_count = 2,
	        .from = {{ip4(0), 24}, {ip6(0), 64}},
	        .admission = 1};
	struct message_gateway_session_end end = {UINT64_MAX};
	struct message_gateway_enter enter = {.sandbox_id = 3,
	        .source = ip4(9),
	        .source_port = 65535,
	        .reached = ip4(1),
	        .form = MESSAGE_FORM_BASE_PATH,
	        .admission = UINT64_MAX};
	struct message_gateway_entered entered = {true};
	struct message_gateway_guesses guesses = {ip6(7), 1u << 20};
	struct message_worker_enter worker = {.source = ip4(9),
	        .source_port = 1,
	        .reached = ip6(2),
	        .form = MESSAGE_FORM_BASE_NAME};
	struct message_worker_associate associate = {ip6(3)};
	struct message_worker_associated associated = {65535, ip6(4)};

	(void)state;
	session.token_hash = SLICE("");
	ROUNDTRIP(gateway_session, &session, NOTHING);
	session.by_address = true;
	ROUNDTRIP(gateway_session, &session, NOTHING);
	session.from_count = 0; /* of anybody */
	REFUSES_TO_ENCODE(gateway_session, &session);
	session.from_count = 2;
	session.token_hash = longer(MESSAGE_TOKEN_HASH_BYTES); /* two proofs */
	REFUSES_TO_ENCODE(gateway_session, &session);
	session.token_hash = SLICE(""); /* an address proves no callback */
	session.callback = true;
	REFUSES_TO_ENCODE(gateway_session, &session);
	session.by_address = false; /* nor does no proof */
	REFUSES_TO_ENCODE(gateway_session, &session);
	session.token_hash = longer(MESSAGE_TOKEN_HASH_BYTES);
	ROUNDTRIP(gateway_session, &session, NOTHING);
	session.callback = false;
	ROUNDTRIP(gateway_start, &start, NOTHING);
	start.listener_kind[0] = CONFIG_GATEWAY_CALLBACKS;
	ROUNDTRIP(gateway_start, &start, NOTHING);
	REFUSES_BYTE(gateway_start, &start, HEAD_BYTES + 1, 0); /* TLS without a certificate */
	start.listener_kind[0] = CONFIG_GATEWAY_TLS;
	REFUSES_BYTE(gateway_start, &start, HEAD_BYTES + 1, 2);
	REFUSES_BYTE(gateway_start, &start, HEAD_BYTES + 2, 2);
	REFUSES_BYTE(gateway_start, &start, HEAD_BYTES + 1, 0); /* TLS without a certificate */
	start.bases[1].authority = longer(CONFIG_GATEWAY_AUTHORITY_MAX + 1);
	REFUSES_TO_ENCODE(gateway_start, &start);
	start.bases[1].authority = SLICE("");
	REFUSES_TO_ENCODE(gateway_start, &start);
	start.base_count = CONFIG_GATEWAY_BASES_MAX + 1;
	REFUSES_TO_ENCODE(gateway_start, &start);
	start.base_count = 1;
	start.bases[0].name = longer(POLICY_HOST_MAX + 1);
	REFUSES_TO_ENCODE(gateway_start, &start);
	start.base_count = 0;
	start.balancer_count = CONFIG_BALANCERS_MAX + 1;
	REFUSES_TO_ENCODE(gateway_start, &start);
	start.balancer_count = 0;
	start.listener_count = CONFIG_GATEWAY_LISTENERS_MAX + 1;
	REFUSES_TO_ENCODE(gateway_start, &start);
	start.listener_count = 0;
	start.handshake_ms = 0;
	REFUSES_TO_ENCODE(gateway_start, &start);
	start.handshake_ms = 1;
	start.unauthenticated = 0;
	REFUSES_TO_ENCODE(gateway_start, &start);
	ROUNDTRIP(gateway_session, &session, NOTHING);
	session.from_count = MESSAGE_FROM_MAX + 1;
	REFUSES_TO_ENCODE(gateway_session, &session);
	session.from_count = 0;
	ROUNDTRIP(gateway_session, &session, NOTHING);
	session.token_hash = longer(MESSAGE_TOKEN_HASH_BYTES - 1);
	REFUSES_TO_ENCODE(gateway_session, &session);
	session.token_hash = longer(MESSAGE_TOKEN_HASH_BYTES + 1);
	REFUSES_TO_ENCODE(gateway_session, &session);
	ROUNDTRIP(gateway_session_end, &end, NOTHING);
	ROUNDTRIP(gateway_enter, &enter, NOTHING);
	enter.form = MESSAGE_FORM_COUNT;
	REFUSES_TO_ENCODE(gateway_enter, &enter);
	enter.form = MESSAGE_FORM_PROXY;
	enter.source.family = 0;
	REFUSES_TO_ENCODE(gateway_enter, &enter);
	ROUNDTRIP(gateway_entered, &entered, NOTHING);
	REFUSES_BYTE(gateway_entered, &entered, HEAD_BYTES, 2);
	ROUNDTRIP(gateway_guesses, &guesses, NOTHING);
	guesses.source.family = 5;
	REFUSES_TO_ENCODE(gateway_guesses, &guesses);
	ROUNDTRIP(worker_enter, &worker, NOTHING);
	worker.form = MESSAGE_FORM_COUNT;
	REFUSES_TO_ENCODE(worker_enter, &worker);
	worker.form = MESSAGE_FORM_PROXY;
	worker.reached = (struct ip){0}; /* nowhere */
	ROUNDTRIP(worker_enter, &worker, NOTHING);
	worker.reached.family = 5;
	REFUSES_TO_ENCODE(worker_enter, &worker);
	worker.reached = worker.source = (struct ip){0};
	REFUSES_TO_ENCODE(worker_enter, &worker);
	ROUNDTRIP(worker_associate, &associate, NOTHING);
	associate.at = (struct ip){0};
	REFUSES_TO_ENCODE(worker_associate, &associate);
	ROUNDTRIP(worker_associated, &associated, NOTHING);
	associated.address.family = 0;
	REFUSES_TO_ENCODE(worker_associated, &associated);
	associated.port = 0; /* there is none */
	ROUNDTRIP(worker_associated, &associated, NOTHING);
}

static void test_handover(void **state)
{
	struct message_gateway_enter enter = {.source = ip4(9),
	        .handover = {.handed = MESSAGE_HANDED_SOCKS_LOGIN,
	                .first = longer(MESSAGE_FIRST_MAX),
	                .reading = longer(MESSAGE_TRAFFIC_SECRET_MAX),
	                .writing = longer(MESSAGE_TRAFFIC_SECRET_MAX),
	                .suite = 255,
	                .reading_next = UINT64_MAX,
	                .writing_next = 1}};
	struct message_worker_enter worker = {.source = ip4(9), .handover = enter.handover};

	(void)state;
	ROUNDTRIP(gateway_enter, &enter, NOTHING);
	ROUNDTRIP(worker_enter, &worker, NOTHING);
	enter.handover.first = longer(MESSAGE_FIRST_MAX + 1);
	REFUSES_TO_ENCODE(gateway_enter, &enter);
	enter.handover.first = SLICE("");
	enter.handover.reading = longer(MESSAGE_TRAFFIC_SECRET_MAX - 1); /* not as long */
	REFUSES_TO_ENCODE(gateway_enter, &enter);
	enter.handover.reading = enter.handover.writing = longer(MESSAGE_TRAFFIC_SECRET_MAX + 1);
	REFUSES_TO_ENCODE(gateway_enter, &enter);
	enter.handover.reading = enter.handover.writing = SLICE(""); /* no TLS */
	ROUNDTRIP(gateway_enter, &enter, NOTHING);
	enter.handover.handed = MESSAGE_HANDED_COUNT;
	REFUSES_TO_ENCODE(gateway_enter, &enter);
	enter.handover.handed = MESSAGE_HANDED_PROXY;
	enter.form = MESSAGE_FORM_BASE_PATH; /* each of its heads proves itself */
	REFUSES_TO_ENCODE(gateway_enter, &enter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(exposed_ports),
	        cmocka_unit_test(calls),
	        cmocka_unit_test(head_is_strict),
	        cmocka_unit_test(text),
	        cmocka_unit_test(recorder),
	        cmocka_unit_test(recorder_event),
	        cmocka_unit_test(session),
	        cmocka_unit_test(worker_start),
	        cmocka_unit_test(worker_start_refuses),
	        cmocka_unit_test(worker_start_host_count_beyond_bytes),
	        cmocka_unit_test(upgrade_steps),
	        cmocka_unit_test(worker_orders),
	        cmocka_unit_test(worker_reports),
	        cmocka_unit_test(gateway),
	        cmocka_unit_test(test_handover),
	        cmocka_unit_test(gateway_signed),
	};

	memset(long_text, 'x', sizeof(long_text));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One event of every kind and variant, for tests that render, count or measure them. */
#ifndef VETHGUARD_TESTS_UNIT_RECORDER_SAMPLES_H
#define VETHGUARD_TESTS_UNIT_RECORDER_SAMPLES_H

#include "vethguard/policy/policy.h"
#include "vethguard/wire/dns.h"
#include "vethguard/wire/event.h"

#define SAMPLE_TIME 1732120000123

static inline struct ip sample_ip(const char *text)
{
	struct ip ip = {0};

	ip_parse(slice_from_string(text), &ip);
	return ip;
}

static inline struct event sample_http(void)
{
	return (struct event){
	        .id = 0x00c0ffee00000001,
	        .kind = EVENT_HTTP,
	        .time_ms = SAMPLE_TIME,
	        .duration_us = 41200,
	        .decision = EVENT_ALLOWED,
	        .rule = SLICE("read-acme"),
	        .credential = SLICE("github"),
	        .src = sample_ip("10.77.0.2"),
	        .src_port = 43122,
	        .dst = sample_ip("100.112.0.9"),
	        .dst_port = 443,
	        .upstream = sample_ip("140.82.121.6"),
	        .upstream_port = 443,
	        .host = SLICE("api.github.com"),
	        .protocol = 6,
	        .bytes_out = 512,
	        .bytes_in = 20480,
	        .sni = SLICE("api.github.com"),
	        .tls_version = 0x0304,
	        .scheme = SLICE("https"),
	        .method = SLICE("GET"),
	        .target = SLICE("/repos/acme/widgets/issues?state=open&per_page=50"),
	        .user_agent = SLICE("python-requests/2.31.0"),
	        .status = 200,
	        .http_version = 11,
	};
}

static inline struct event sample_denied(void)
{
	struct event e = sample_http();

	e.id++;
	e.decision = EVENT_DENIED;
	e.policy_reason = POLICY_REASON_DEFAULT;
	e.rule = e.credential = (struct slice){0};
	e.upstream = (struct ip){0};
	e.upstream_port = 0;
	e.host = e.sni = SLICE("paste.example");
	e.method = SLICE("POST");
	e.target = SLICE("/upload");
	e.status = 403;
	return e;
}

static inline struct event sample_dns(void)
{
	return (struct event){
	        .id = 0x00c0ffee00000010,
	        .kind = EVENT_DNS,
	        .time_ms = SAMPLE_TIME,
	        .duration_us = 90,
	        .src = sample_ip("fd77::2"),
	        .src_port = 53211,
	        .dst = sample_ip("fd77::1"),
	        .dst_port = 53,
	        .host = SLICE("api.github.com"),
	        .protocol = 17,
	        .dns_id = 4711,
	        .dns_type = DNS_AAAA,
	        .dns_class = 1,
	        .answer = sample_ip("fd77:1::9"),
	};
}

static inline struct event sample_connection(void)
{
	return (struct event){
	        .id = 0x00c0ffee00000020,
	        .kind = EVENT_CONNECTION,
	        .time_ms = SAMPLE_TIME,
	        .duration_us = 2500000,
	        .rule = SLICE("allow[2]"),
	        .src = sample_ip("10.77.0.2"),
	        .src_port = 43200,
	        .dst = sample_ip("100.112.0.10"),
	        .dst_port = 443,
	        .upstream = sample_ip("151.101.1.63"),
	        .upstream_port = 443,
	        .host = SLICE("files.pythonhosted.org"),
	        .protocol = 6,
	        .bytes_out = 2000,
	        .bytes_in = 90000000,
	        .sni = SLICE("files.pythonhosted.org"),
	        .passthrough = true,
	};
}

static inline struct event sample_packet(void)
{
	return (struct event){
	        .id = 0x00c0ffee00000030,
	        .kind = EVENT_PACKET,
	        .time_ms = SAMPLE_TIME,
	        .decision = EVENT_DROPPED,
	        .src = sample_ip("10.77.0.2"),
	        .src_port = 50000,
	        .dst = sample_ip("8.8.8.8"),
	        .dst_port = 9999,
	        .protocol = 17,
	        .ethertype = 0x0800,
	        .count = 1,
	        .bytes_out = 60,
	        .verdict_rule = SLICE("other"),
	};
}

static inline struct event sample_finding(enum event_finding finding)
{
	return (struct event){
	        .id = 0x00c0ffee00000040,
	        .kind = EVENT_FINDING,
	        .time_ms = SAMPLE_TIME,
	        .decision = EVENT_DENIED,
	        .cause = EVENT_CAUSE_BINDING,
	        .finding = finding,
	        .about = 0x00c0ffee00000001,
	        .detail = SLICE("Host is evil.example, but TLS named api.github.com."),
	        .src = sample_ip("10.77.0.2"),
	        .src_port = 43122,
	        .dst = sample_ip("100.112.0.9"),
	        .dst_port = 443,
	        .host = SLICE("api.github.com"),
	        .protocol = 6,
	        .sni = SLICE("api.github.com"),
	        .tls_version = 0x0304,
	        .method = SLICE("GET"),
	        .scheme = SLICE("https"),
	        .target = SLICE("/user"),
	};
}

static inline struct event sample_call(void)
{
	return (struct event){
	        .id = 0x9d21c07e5b3a0009u,
	        .kind = EVENT_API,
	        .time_ms = SAMPLE_TIME,
	        .operation = SLICE("sandboxes.attach"),
	        .method = SLICE("POST"),
	        .target = SLICE("/v1/sandboxes"),
	        .user_agent = SLICE("curl/8.14.1"),
	        .user = SLICE("alice"),
	        .user_id = 1000,
	        .process_id = 4711,
	        .host = SLICE("agent-7"),
	        .status = 201,
	};
}

static inline struct event sample_lifecycle(enum event_lifecycle lifecycle)
{
	return (struct event){
	        .id = 0x00c0ffee00000050,
	        .kind = EVENT_LIFECYCLE,
	        .time_ms = SAMPLE_TIME,
	        .lifecycle = lifecycle,
	        .detail = SLICE("curl https://api.github.com/user"),
	};
}

#endif

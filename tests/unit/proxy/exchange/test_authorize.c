/* SPDX-License-Identifier: Apache-2.0 */
/* Judging: every way in which a request can disagree with its connection, and the few in which it
 * agrees. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../policy/policy_test.h"
#include "proxy/client/client.h"
#include "proxy/exchange/authorize.h"

static const char policy[] =
        "vethguard: 1\n"
        "name: test\n"
        "credentials:\n"
        "  key: {source: \"env:KEY\", inject: bearer}\n"
        "allow:\n"
        "  - {name: api, to: \"https://api.test\", paths: [/v1/**], credential: key}\n"
        "  - {name: alt, to: \"https://api.test:8443\"}\n"
        "  - {name: web, to: \"http://web.test\"}\n"
        "  - {name: web8080, to: \"http://web.test:8080\"}\n"
        "  - {name: wild, to: \"https://*.wild.test\"}\n"
        "  - {name: pass, to: \"https://pass.test\", tls: passthrough}\n"
        "  - {name: literal, to: \"https://192.0.2.7\"}\n"
        "  - {name: literal6, to: \"http://[2001:db8::7]\"}\n"
        "  - {name: ssh, to: \"tcp://git.test:22\"}\n"
        "  - {name: form, to: \"http://form.test\", methods: [GET, POST, PUT]}\n"
        "  - {name: two, to: \"https://two.test\", paths: [/open/**]}\n"
        "  - {name: key, to: \"https://two.test\", paths: [/key/**], credential: key}\n"
        "deny:\n"
        "  - {name: never, to: \"http://web.test\", methods: [DELETE]}\n"
        "  - {name: shut, to: \"http://web.test\", paths: [/shut/**]}\n";

#define TLS 1u
#define PROXY 2u     /* on the proxy port */
#define CONNECTED 4u /* ... after CONNECT */

#define ALLOW (-1)
#define SEARCHED (-2) /* refused as BIND is, and nothing to be alarmed about */
#define BIND EVENT_CAUSE_BINDING
#define DENY EVENT_CAUSE_POLICY
#define BAD EVENT_CAUSE_CLIENT

static const struct {
	unsigned how;
	const char *to; /* name or address that the connection is for; "" on the proxy port */
	uint16_t port;
	const char *sni;
	const char *head; /* request line and Host */
	int outcome;
	bool credential;
	const char *host; /* judged, where allowed */
} cases[] = {
        /* What agrees. */
        {TLS, "api.test", 443, "api.test", "GET /v1/x HTTP/1.1\r\nHost: api.test", ALLOW, true,
                "api.test"},
        {TLS, "api.test", 443, "api.test", "GET /v1/x HTTP/1.1\r\nHost: API.test.:443", ALLOW, true,
                "api.test"},
        {TLS, "api.test", 443, "", "GET /v1/x HTTP/1.1\r\nHost: api.test", ALLOW, true, "api.test"},
        {TLS, "api.test", 443, "api.test", "GET /v1/x HTTP/1.0", ALLOW, true, "api.test"},
        {TLS, "198.51.100.1", 443, "api.test", "GET /v1/x HTTP/1.1\r\nHost: api.test", ALLOW, true,
                "api.test"},
        {TLS, "api.test", 443, "api.test", "GET https://api.test/v1/x HTTP/1.1\r\nHost: api.test",
                ALLOW, true, "api.test"},
        {TLS, "api.test", 8443, "api.test", "GET /x HTTP/1.1\r\nHost: api.test:8443", ALLOW, false,
                "api.test"},
        {TLS, "api.test", 8443, "api.test", "GET /x HTTP/1.1\r\nHost: api.test", ALLOW, false,
                "api.test"},
        {TLS | PROXY | CONNECTED, "api.test", 443, "api.test",
                "GET /v1/x HTTP/1.1\r\nHost: api.test", ALLOW, true, "api.test"},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test", ALLOW, false, "web.test"},
        {0, "web.test", 8080, "", "GET / HTTP/1.1\r\nHost: web.test:8080", ALLOW, false,
                "web.test"},
        {0, "198.51.100.1", 80, "", "GET / HTTP/1.1\r\nHost: web.test", ALLOW, false, "web.test"},
        {PROXY, "", 0, "", "GET http://web.test/ HTTP/1.1\r\nHost: web.test", ALLOW, false,
                "web.test"},
        {PROXY, "", 0, "", "GET http://[2001:db8::7]/ HTTP/1.1\r\nHost: [2001:db8::7]", ALLOW,
                false, ""},
        {TLS, "192.0.2.7", 443, "", "GET / HTTP/1.1\r\nHost: 192.0.2.7", ALLOW, false, ""},
        {TLS, "a.b.wild.test", 443, "a.b.wild.test", "GET / HTTP/1.1\r\nHost: a.b.wild.test", ALLOW,
                false, "a.b.wild.test"},

        /* Dialed is what a search list has made of the name: its denial is explained, and where
         * there would be none it is refused. */
        {TLS, "evil.test.corp.test", 443, "evil.test", "GET / HTTP/1.1\r\nHost: evil.test", DENY,
                false, "evil.test"},
        {0, "evil.test.corp.test", 80, "", "GET / HTTP/1.1\r\nHost: evil.test", DENY, false,
                "evil.test"},
        {TLS, "evil.test.wild.test", 443, "evil.test", "GET / HTTP/1.1\r\nHost: evil.test", DENY,
                false, "evil.test"},
        {TLS, "api.test.corp.test", 443, "api.test", "GET /v1/x HTTP/1.1\r\nHost: api.test",
                SEARCHED, false, NULL},
        {TLS, "api.test.wild.test", 443, "api.test", "GET /v1/x HTTP/1.1\r\nHost: api.test",
                SEARCHED, false, NULL},
        {0, "web.test.corp.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test", SEARCHED, false,
                NULL},
        {0, "web.test.corp.test", 80, "", "DELETE / HTTP/1.1\r\nHost: web.test", DENY, false,
                "web.test"},
        /* No search list makes these. */
        {TLS, "api.test-corp.test", 443, "api.test", "GET /v1/x HTTP/1.1\r\nHost: api.test", BIND,
                false, NULL},
        {TLS, "corp.test.api.test", 443, "api.test", "GET /v1/x HTTP/1.1\r\nHost: api.test", BIND,
                false, NULL},
        {TLS, "api.test", 443, "api.test.corp.test",
                "GET /v1/x HTTP/1.1\r\nHost: api.test.corp.test", BIND, false, NULL},
        {TLS, "evil.test.corp.test", 443, "evil.test", "GET /v1/x HTTP/1.1\r\nHost: api.test", BIND,
                false, NULL},
        {TLS, "evil.test.corp.test", 443, "evil.test",
                "GET / HTTP/1.1\r\nHost: evil.test.corp.test", BIND, false, NULL},
        {TLS, "api.test.corp.test", 443, "", "GET /v1/x HTTP/1.1\r\nHost: api.test", BIND, false,
                NULL},
        {0, "web.test.corp.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test:8080", BIND, false,
                NULL},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test.corp.test", BIND, false, NULL},
        {TLS | PROXY | CONNECTED, "api.test.corp.test", 443, "api.test",
                "GET /v1/x HTTP/1.1\r\nHost: api.test", BIND, false, NULL},

        /* Host against SNI. */
        {TLS, "api.test", 443, "api.test", "GET /v1/x HTTP/1.1\r\nHost: a.wild.test", BIND, false,
                NULL},
        {TLS, "a.wild.test", 443, "a.wild.test", "GET /v1/x HTTP/1.1\r\nHost: api.test", BIND,
                false, NULL},
        {TLS, "198.51.100.1", 443, "a.wild.test", "GET /v1/x HTTP/1.1\r\nHost: api.test", BIND,
                false, NULL},
        {TLS, "198.51.100.1", 443, "", "GET /v1/x HTTP/1.1\r\nHost: api.test", BIND, false, NULL},
        {TLS, "api.test", 443, "api.test", "GET /v1/x HTTP/1.1\r\nHost: 198.51.100.1", BIND, false,
                NULL},
        {TLS, "192.0.2.7", 443, "", "GET / HTTP/1.1\r\nHost: 192.0.2.8", BIND, false, NULL},
        {TLS, "a.wild.test", 443, "a.wild.test", "GET / HTTP/1.1\r\nHost: b.wild.test", BIND, false,
                NULL},
        /* SNI against the name that was dialed or CONNECTed to. */
        {TLS, "a.wild.test", 443, "api.test", "GET /v1/x HTTP/1.1\r\nHost: api.test", BIND, false,
                NULL},
        {TLS, "api.test", 443, "a.wild.test", "GET / HTTP/1.1\r\nHost: a.wild.test", BIND, false,
                NULL},
        {TLS | PROXY | CONNECTED, "a.wild.test", 443, "api.test",
                "GET /v1/x HTTP/1.1\r\nHost: api.test", BIND, false, NULL},
        {TLS | PROXY | CONNECTED, "a.wild.test", 443, "", "GET /v1/x HTTP/1.1\r\nHost: api.test",
                BIND, false, NULL},
        /* Ports. */
        {TLS, "api.test", 443, "api.test", "GET /v1/x HTTP/1.1\r\nHost: api.test:8443", BIND, false,
                NULL},
        {TLS, "api.test", 8443, "api.test", "GET /v1/x HTTP/1.1\r\nHost: api.test:443", BIND, false,
                NULL},
        {TLS, "api.test", 8443, "api.test", "GET https://api.test/x HTTP/1.1\r\nHost: api.test",
                BIND, false, NULL},
        {TLS, "api.test", 444, "api.test", "GET /v1/x HTTP/1.1\r\nHost: api.test", DENY, false,
                NULL},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test:8080", BIND, false, NULL},
        /* Schemes: a credential never without TLS. */
        {0, "api.test", 80, "", "GET /v1/x HTTP/1.1\r\nHost: api.test", DENY, false, NULL},
        {0, "api.test", 443, "", "GET /v1/x HTTP/1.1\r\nHost: api.test", DENY, false, NULL},
        {0, "api.test", 443, "", "GET https://api.test/v1/x HTTP/1.1\r\nHost: api.test", BIND,
                false, NULL},
        {TLS, "api.test", 80, "api.test", "GET http://api.test/v1/x HTTP/1.1\r\nHost: api.test",
                BIND, false, NULL},
        {PROXY, "", 0, "", "GET https://api.test/v1/x HTTP/1.1\r\nHost: api.test", BAD, false,
                NULL},
        {PROXY, "", 0, "", "GET http://api.test:443/v1/x HTTP/1.1\r\nHost: api.test:443", DENY,
                false, NULL},
        {PROXY, "", 0, "", "GET /v1/x HTTP/1.1\r\nHost: api.test", BAD, false, NULL},
        /* Plain connections for a name. */
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: other.test", BIND, false, NULL},
        {0, "other.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test", BIND, false, NULL},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: 198.51.100.1", BIND, false, NULL},
        {0, "198.51.100.1", 80, "", "GET / HTTP/1.1\r\nHost: 198.51.100.2", BIND, false, NULL},
        {0, "198.51.100.1", 80, "", "GET / HTTP/1.1\r\nHost: 198.51.100.1", DENY, false, NULL},
        /* Fields that ask for another method or path: judged for that too. */
        {0, "form.test", 80, "",
                "POST / HTTP/1.1\r\nHost: form.test\r\nX-HTTP-Method-Override: PUT", ALLOW, false,
                "form.test"},
        {0, "form.test", 80, "",
                "POST / HTTP/1.1\r\nHost: form.test\r\nx-http-method-override: put", ALLOW, false,
                "form.test"},
        {0, "form.test", 80, "",
                "POST / HTTP/1.1\r\nHost: form.test\r\nX-HTTP-Method-Override: DELETE", DENY, false,
                NULL},
        {0, "form.test", 80, "", "POST / HTTP/1.1\r\nHost: form.test\r\nX-HTTP-Method: delete",
                DENY, false, NULL},
        {0, "form.test", 80, "", "POST / HTTP/1.1\r\nHost: form.test\r\nX-Method-Override: Delete",
                DENY, false, NULL},
        {0, "form.test", 80, "",
                "POST / HTTP/1.1\r\nHost: form.test\r\nX_HTTP_Method_Override: DELETE", DENY, false,
                NULL},
        {0, "form.test", 80, "",
                "POST / HTTP/1.1\r\nHost: form.test\r\nX-HTTP-Method-Override: PUT, DELETE", DENY,
                false, NULL},
        {0, "form.test", 80, "",
                "POST / HTTP/1.1\r\nHost: form.test\r\nX-HTTP-Method-Override: "
                "PUT\r\nX-HTTP-Method-Override: DELETE",
                DENY, false, NULL},
        {0, "form.test", 80, "", "POST / HTTP/1.1\r\nHost: form.test\r\nX-HTTP-Method-Override: /",
                DENY, false, NULL},
        {0, "form.test", 80, "",
                "POST / HTTP/1.1\r\nHost: form.test\r\nX-HTTP-Method-Override:", BAD, false, NULL},
        {0, "form.test", 80, "",
                "POST / HTTP/1.1\r\nHost: form.test\r\nX-HTTP-Method-Override: "
                "012345678901234567890123456789012",
                BAD, false, NULL},
        {0, "form.test", 80, "",
                "POST / HTTP/1.1\r\nHost: form.test\r\nX-HTTP-Method-Overridd: DELETE", ALLOW,
                false, "form.test"},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test\r\nX-HTTP-Method-Override: PATCH",
                ALLOW, false, "web.test"},
        {0, "web.test", 80, "",
                "GET / HTTP/1.1\r\nHost: web.test\r\nX-HTTP-Method-Override: delete", DENY, false,
                NULL},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test\r\nX-Original-URL: /open?/shut/",
                ALLOW, false, "web.test"},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test\r\nX-Original-URL: /shut/x", DENY,
                false, NULL},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test\r\nX-Rewrite-URL: /a/../shut/x?y",
                DENY, false, NULL},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test\r\nX-Rewrite-URL: //shut/x", DENY,
                false, NULL},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test\r\nX_Original_URL: /%73hut/x",
                DENY, false, NULL},
        {0, "web.test", 80, "",
                "GET / HTTP/1.1\r\nHost: web.test\r\nX-Original-URL: http://web.test/", BAD, false,
                NULL},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test\r\nX-Original-URL: /a/..%2fshut",
                BAD, false, NULL},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test\r\nX-Original-URL:", BAD, false,
                NULL},
        {0, "web.test", 80, "", "GET / HTTP/1.1\r\nHost: web.test\r\nX-Rewrite-URL: /..", BAD,
                false, NULL},
        {TLS, "two.test", 443, "two.test",
                "GET /key/a HTTP/1.1\r\nHost: two.test\r\nX-Original-URL: /key/b", ALLOW, true,
                "two.test"},
        {TLS, "two.test", 443, "two.test",
                "GET /key/a HTTP/1.1\r\nHost: two.test\r\nX-Original-URL: /open/b", BIND, false,
                NULL},
        {TLS, "two.test", 443, "two.test",
                "GET /open/a HTTP/1.1\r\nHost: two.test\r\nX-Original-URL: /key/b", BIND, false,
                NULL},
        {TLS, "two.test", 443, "two.test",
                "GET /open/a HTTP/1.1\r\nHost: two.test\r\nX-Original-URL: /other", DENY, false,
                NULL},
        /* Each is allowed alone; what both together ask for was judged by nobody. */
        {TLS, "two.test", 443, "two.test",
                "GET /open/a HTTP/1.1\r\nHost: two.test\r\nX-Original-URL: /open/b\r\n"
                "X-HTTP-Method: GET",
                BAD, false, NULL},
        {TLS, "two.test", 443, "two.test",
                "GET /open/a HTTP/1.1\r\nHost: two.test\r\nX-Original-URL: /open/b\r\n"
                "X-Rewrite-URL: /open/c",
                ALLOW, false, "two.test"},
        /* Destinations that the policy does not mention. */
        {TLS, "api.test", 443, "api.test", "GET /v2/x HTTP/1.1\r\nHost: api.test", DENY, false,
                NULL},
        {TLS, "api.test", 443, "api.test", "GET /v1/../v2/x HTTP/1.1\r\nHost: api.test", DENY,
                false, NULL},
        {TLS, "api.test", 443, "api.test", "GET /v1%2Fx HTTP/1.1\r\nHost: api.test", DENY, false,
                NULL},
        {TLS, "api.test", 443, "api.test", "OPTIONS * HTTP/1.1\r\nHost: api.test", DENY, false,
                NULL},
        {TLS, "wild.test", 443, "wild.test", "GET / HTTP/1.1\r\nHost: wild.test", DENY, false,
                NULL},
        {TLS, "git.test", 22, "git.test", "GET / HTTP/1.1\r\nHost: git.test:22", DENY, false, NULL},
        {TLS, "pass.test", 443, "pass.test", "GET / HTTP/1.1\r\nHost: pass.test", BIND, false,
                NULL},
};

static void set_up_client(struct client *c, size_t i)
{
	struct slice to = slice_from_string(cases[i].to);

	c->tls = cases[i].how & TLS;
	c->explicit_proxy = cases[i].how & PROXY;
	c->connected = cases[i].how & CONNECTED;
	c->destination.port = cases[i].port;
	if (to.n && !ip_parse(to, &c->destination.address))
		destination_set_host(&c->destination, to);
	c->sni_n = strlen(cases[i].sni);
	memcpy(c->sni, cases[i].sni, c->sni_n + 1);
}

static void authorize_case(
        const struct policy *by, size_t i, struct destination *to, struct verdict *out)
{
	static struct proxy proxy;
	static struct http_request request;
	struct client c = {.proxy = &proxy};
	struct http1 h;
	char text[1000];
	size_t used;

	proxy.config.policy = by;
	set_up_client(&c, i);
	snprintf(text, sizeof(text), "%s\r\n\r\n", cases[i].head);
	http1_init(&h, false, 0);
	assert_int_equal(
	        http1_request_head(&h, (uint8_t *)text, strlen(text), &used, &request), HTTP1_DONE);
	authorize_request(proxy.config.policy, &c, &request, NULL, to, out);
	http1_fini(&h);
}

static void test_every_disagreement(void **state)
{
	struct test_policy t;

	(void)state;
	test_load(&t, policy, false);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct destination d;
		struct verdict j;
		bool good;

		authorize_case(&t.policy, i, &d, &j);
		good = cases[i].outcome == ALLOW ? j.allowed
		       : cases[i].outcome == SEARCHED
		               ? !j.allowed && j.cause == EVENT_CAUSE_BINDING
		               : !j.allowed && (int)j.cause == cases[i].outcome;
		good &= (j.allowed && j.decision.credential != POLICY_NONE) == cases[i].credential;
		good &= !cases[i].host ||
		        slice_equals(destination_host(&d), slice_from_string(cases[i].host));
		good &= (j.finding == EVENT_FINDING_BINDING_MISMATCH) ==
		        (cases[i].outcome == (int)BIND);
		if (!good)
			fail_msg("case %zu, %s sni %s: %s: allowed %d cause %d credential %u host "
			         "%s",
			        i, cases[i].to, cases[i].sni, cases[i].head, j.allowed, j.cause,
			        j.decision.credential, d.host);
	}
	test_unload(&t);
}

/* A request that is only observed gets no credential, and disagreement is refused as ever. */
static void test_observing_gives_no_credential(void **state)
{
	struct test_policy t;

	(void)state;
	test_load(&t, policy, true);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct destination d;
		struct verdict j;

		authorize_case(&t.policy, i, &d, &j);
		assert_int_equal(
		        j.allowed && j.decision.credential != POLICY_NONE, cases[i].credential);
		if (cases[i].outcome == (int)BIND &&
		        !slice_equals(slice_from_string(cases[i].to), SLICE("pass.test")))
			assert_false(j.allowed);
		if (cases[i].outcome == SEARCHED)
			assert_false(j.allowed);
		if (cases[i].outcome == (int)DENY && cases[i].host) {
			assert_true(j.allowed && j.decision.observed);
			assert_true(slice_equals(
			        destination_host(&d), slice_from_string(cases[i].host)));
		}
	}
	test_unload(&t);
}

static struct ip address(const char *text)
{
	struct ip ip;

	assert_true(ip_parse(slice_from_string(text), &ip));
	return ip;
}

static void test_addresses(void **state)
{
	static const char *const special[] = {"127.0.0.1", "10.0.0.1", "169.254.169.254",
	        "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1",
	        "fc00::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2001::1",
	        "ff02::1"};
	const struct ip_prefix permit = {{4, {10, 1}}, 16};
	static struct proxy proxy;
	const struct policy_decision plain = {0}, named = {.names_address = true};
	struct ip ip;

	(void)state;
	for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++) {
		ip = address(special[i]);
		assert_false(authorize_address(&proxy, &plain, &ip));
		assert_true(authorize_address(&proxy, &named, &ip));
	}
	ip = address("8.8.8.8");
	assert_true(authorize_address(&proxy, &plain, &ip));
	proxy.config.permit = &permit;
	proxy.config.permit_count = 1;
	ip = address("10.1.2.3");
	assert_true(authorize_address(&proxy, &plain, &ip));
	ip = address("10.2.2.3");
	assert_false(authorize_address(&proxy, &plain, &ip));
	ip = address("::ffff:10.1.2.3");
	assert_false(authorize_address(&proxy, &plain, &ip));
}

/* A permit for a translator's prefix does not permit the private networks behind it. */
static void test_addresses_behind_a_translator(void **state)
{
	static const struct {
		const char *address;
		bool passes;
	} addresses[] = {
	        {"64:ff9b::8.8.8.8", true},
	        {"64:ff9b::10.1.2.3", true}, /* permitted itself */
	        {"64:ff9b::10.2.2.3", false},
	        {"64:ff9b::127.0.0.1", false},
	        {"64:ff9b::169.254.169.254", false},
	        {"64:ff9b::192.168.7.7", true}, /* by the narrow one */
	        {"64:ff9b::192.168.8.7", false},
	        {"::ffff:8.8.8.8", true},
	        {"::ffff:169.254.169.254", false},
	        {"::ffff:0:127.0.0.1", false},
	        {"64:ff9b:1:808:8:800::", true}, /* 8.8.8.8 */
	        {"64:ff9b:1:a02:2:300::", false},
	        {"64:ff9b:1:a01:2:300::", true},
	        {"64:ff9b:1:a9fe:a9:fe00::", false},
	        {"fd01::1", true},
	};
	const struct ip_prefix permit[] = {
	        {{4, {10, 1}}, 16},
	        {{6, {0, 0x64, 0xff, 0x9b}}, 96},
	        {{6, {0, 0x64, 0xff, 0x9b, [12] = 192, 168, 7}}, 120},
	        {{6, {[10] = 0xff, 0xff}}, 96},
	        {{6, {0, 0x64, 0xff, 0x9b, 0, 1}}, 48},
	        {{6, {0xfd, 1}}, 16},
	};
	static struct proxy proxy;
	const struct policy_decision plain = {0};

	(void)state;
	proxy.config.permit = permit;
	proxy.config.permit_count = sizeof(permit) / sizeof(*permit);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
		struct ip ip = address(addresses[i].address);

		if (authorize_address(&proxy, &plain, &ip) != addresses[i].passes)
			fail_msg("%s", addresses[i].address);
	}
}

static void test_texts(void **state)
{
	char out[POLICY_HOST_MAX + 16];
	struct destination d = {.port = 443};

	(void)state;
	destination_set_host(&d, SLICE("a.test"));
	assert_string_equal(destination_text(&d, out), "a.test:443");
	d = (struct destination){.address = address("::1"), .port = 80};
	assert_string_equal(destination_text(&d, out), "[::1]:80");
	d.port = 0;
	assert_string_equal(destination_text(&d, out), "[::1]");
	memset(d.host, 'a', POLICY_HOST_MAX);
	assert_false(destination_set_host(&d, slice_of(out, POLICY_HOST_MAX + 1)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_every_disagreement),
	        cmocka_unit_test(test_observing_gives_no_credential),
	        cmocka_unit_test(test_addresses),
	        cmocka_unit_test(test_addresses_behind_a_translator),
	        cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of responses to requests by a base URL: references and cookies fit the client's view. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "proxy/exchange/exchange.h"

static struct client client;
static struct exchange exchange;
static char head[8192];

/* The head of the response with this field, to a request to https://api.example:PORT with this
 * path. */
static const char *respond(enum message_form form, const char *path, uint16_t port,
        const char *name, const char *value)
{
	static struct http_response response;
	struct buf out;

	client = (struct client){.form = form, .tls = true, .keep_alive = true};
	memset(&exchange, 0, sizeof(exchange));
	exchange.client = &client;
	exchange.client_version = 11;
	exchange.destination.port = port;
	destination_set_host(&exchange.destination, SLICE("api.example"));
	exchange.request.path_n = strlen(path);
	memcpy(exchange.request.path, path, strlen(path));
	response = (struct http_response){.status = 302, .reason = SLICE("Found")};
	assert_true(http_add(&response.fields, slice_from_string(name), slice_from_string(value)));
	buf_init(&out, sizeof(head) - 1);
	assert_int_equal(client_base_response(&out, &exchange, &response), 0);
	memcpy(head, buf_bytes(&out), out.len);
	head[out.len] = 0;
	assert_string_equal(head + out.len - 4, "\r\n\r\n");
	buf_fini(&out);
	return head;
}

static void has(const char *text, const char *name, const char *value)
{
	char line[512];

	snprintf(line, sizeof(line), "\r\n%s: %s\r\n", name, value);
	if (!strstr(text, line))
		fail_msg("no %s: %s in %s", name, value, text);
}

static void leads(const char *path, const char *location, const char *by_path, const char *by_name)
{
	has(respond(MESSAGE_FORM_BASE_PATH, path, 443, "Location", location), "Location", by_path);
	has(respond(MESSAGE_FORM_BASE_NAME, path, 443, "Location", location), "Location", by_name);
}

static void test_locations(void **state)
{
	(void)state;
	leads("/", "/x", "./x", "/x");
	leads("/a", "/x?y#z", "./x?y#z", "/x?y#z");
	leads("/a/", "/x", "../x", "/x");
	leads("/a/b/c", "/", "../../", "/");
	leads("/a/b", "https://api.example/x", "../x", "/x");
	leads("/a", "HTTPS://API.example:443", "./", "/");
	leads("/a", "https://api.example?q", "./?q", "/?q");
	leads("/a", "//api.example/x", "./x", "/x");
	leads("/a", "https://api.example//x.example/", ".//x.example/", "/.//x.example/");
	leads("/a", "///x", "///x", "///x"); /* no host: nobody's */
	leads("/a/b", "https://b.example/x", "../../../https/b.example/x", "https://b.example/x");
	leads("/a", "http://api.example/x", "../../http/api.example/x", "http://api.example/x");
	leads("/a", "https://api.example:8443/", "../../https/api.example:8443/",
	        "https://api.example:8443/");
	leads("/a", "http://b.example:80", "../../http/b.example/", "http://b.example:80");
	leads("/a", "//192.0.2.1/x", "../../https/192.0.2.1/x", "//192.0.2.1/x");
	/* These stay. */
	leads("/a", "x/y", "x/y", "x/y");
	leads("/a", "?q", "?q", "?q");
	leads("/a", "", "", "");
	leads("/a", "https://u@b.example/", "https://u@b.example/", "https://u@b.example/");
	leads("/a", "https://[::1]/", "https://[::1]/", "https://[::1]/");
	leads("/a", "vscode://x/", "vscode://x/", "vscode://x/");
	leads("/a", "https:x", "https:x", "https:x");
	leads("/a", "1x://b/", "1x://b/", "1x://b/");
	has(respond(MESSAGE_FORM_BASE_PATH, "/a/b", 8443, "content-location",
	            "https://api.example:8443/x"),
	        "content-location", "../x");
	has(respond(MESSAGE_FORM_BASE_PATH, "/a", 8443, "Location", "https://api.example/x"),
	        "Location", "../../https/api.example/x");
}

static void sets(const char *cookie, const char *by_path, const char *by_name)
{
	has(respond(MESSAGE_FORM_BASE_PATH, "/", 443, "Set-Cookie", cookie), "Set-Cookie", by_path);
	has(respond(MESSAGE_FORM_BASE_NAME, "/", 443, "Set-Cookie", cookie), "Set-Cookie", by_name);
}

static void test_cookies(void **state)
{
	(void)state;
	sets("a=b", "a=b", "a=b");
	sets("a=b; Path=/; HttpOnly", "a=b; HttpOnly", "a=b; Path=/; HttpOnly");
	sets("a=b;domain = .example ;PATH=/x;Secure", "a=b;Secure", "a=b;PATH=/x;Secure");
	sets("path=/; Domain; path", "path=/", "path=/; path");
	sets("a=b; Domains=c; X-Path=d;", "a=b; Domains=c; X-Path=d", "a=b; Domains=c; X-Path=d");
}

static void test_what_is_left_out(void **state)
{
	static const char *const names[] = {"Access-Control-Allow-Origin",
	        "Access-Control-Allow-Credentials", "Cross-Origin-Resource-Policy",
	        "Strict-Transport-Security", "Alt-Svc", "Clear-Site-Data", "Referrer-Policy",
	        "Service-Worker-Allowed"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_null(
		        strstr(respond(MESSAGE_FORM_BASE_PATH, "/", 443, names[i], "upstream's"),
		                "upstream's"));
	has(respond(MESSAGE_FORM_BASE_PATH, "/", 443, "X", "y"), "X", "y");
	has(head, "access-control-allow-origin", "*");
	has(head, "cross-origin-resource-policy", "cross-origin");
	has(head, "content-security-policy", "sandbox");
	has(head, "referrer-policy", "no-referrer");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_locations),
	        cmocka_unit_test(test_cookies),
	        cmocka_unit_test(test_what_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The control API: sessions. The token is in the answer that makes one, and nowhere else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "control_fixture.h"

#include "vethguard/tls/digest.h"

static void test_created(void **state)
{
	uint8_t hash[MESSAGE_TOKEN_HASH_BYTES];
	struct digest digest = {0};
	const char *token;
	struct slice text;
	json_t *made;

	(void)state;
	all.is_session = true;
	assert_int_equal(call("POST", "/v1/sessions",
	                         "{\"name\":\"a\",\"policy\":\"/p\",\"ttl_s\":9,\"observe\":true,"
	                         "\"labels\":{\"k\":\"v\"},\"vars\":{\"x\":\"y\"},"
	                         "\"from\":[\"192.0.2.0/24\",\"2001:db8::/32\"]}"),
	        201);
	assert_non_null(strstr(all.asked, "attach a 4 - - 0/0 - - /p 1 9 1:k=v 1:x=y"));
	assert_string_equal(f.operation, "sessions.create");
	assert_int_equal(all.session.from_count, 2);
	assert_int_equal(all.session.from[1].bits, 32);
	assert_non_null(strstr(answer, "\"kind\":\"session\""));
	assert_non_null(strstr(answer, "\"from\":[\"192.0.2.0/24\",\"2001:db8::/32\"]"));
	assert_non_null(strstr(answer, "\"warnings\":["));
	made = json_answer();
	token = json_string_value(json_object_get(made, "token"));
	assert_int_equal(strlen(token), SESSION_TOKEN_TEXT);
	text = slice_from_string(token);
	assert_int_equal(digest_init(&digest), 0);
	assert_int_equal(digest_sha256(&digest, &text, 1, hash), 0);
	digest_fini(&digest);
	assert_memory_equal(hash, all.session.hash, sizeof(hash));
	json_decref(made);
	assert_int_equal(call("POST", "/v1/sessions", "{\"policy\":\"/p\"}"), 201);
	assert_non_null(strstr(all.asked, "attach - 4 - - 0/0 - - /p 0 86400 0:= 0:="));
	assert_int_equal(all.session.from_count, 0);
	assert_int_equal(
	        call("POST", "/v1/sessions",
	                "{\"policy\":\"/p\",\"by_address\":true,\"from\":[\"192.0.2.1/32\"]}"),
	        201);
	assert_true(all.session.by_address);
	assert_non_null(strstr(answer, "\"token\":null"));
	assert_false(all.session.callback);
	assert_int_equal(
	        call("POST", "/v1/sessions", "{\"policy\":\"/p\",\"callback\":true}"), 201);
	assert_true(all.session.callback);
	assert_null(strstr(answer, "\"token\":null"));
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_others(void **state)
{
	json_t *list;

	(void)state;
	all.is_session = true;
	assert_int_equal(call("GET", "/v1/sessions/one", ""), 200);
	assert_null(strstr(answer, "token"));
	asks("POST", "/v1/sessions/one/extend", "{\"ttl_s\":7200}", "extend one 7200");
	assert_string_equal(f.operation, "sessions.extend");
	asks("POST", "/v1/sessions/one/certificate", "{\"certificate_sha256\":\"" HASH "\"}",
	        "certify one 01ef");
	assert_string_equal(f.operation, "sessions.certify");
	asks("POST", "/v1/tokens/revoke", "{\"signer\":\"a\",\"id\":\"b c\"}",
	        "revoke token a b c");
	assert_string_equal(f.operation, "tokens.revoke");
	assert_int_equal(call("DELETE", "/v1/sessions/one", ""), 200);
	assert_string_equal(all.asked, "revoke one");
	assert_string_equal(f.operation, "sessions.revoke");
	assert_int_equal(call("GET", "/v1/sessions", ""), 200);
	list = json_answer();
	assert_int_equal(json_array_size(json_object_get(list, "sessions")), 2);
	json_decref(list);
	/* A sandbox that is not a session is not shown as one. */
	all.asked[0] = 0;
	all.is_session = false;
	refused(404, "GET", "/v1/sessions/one", "", "there is no session one");
	assert_int_equal(call("GET", "/v1/sessions", ""), 200);
	list = json_answer();
	assert_int_equal(json_array_size(json_object_get(list, "sessions")), 0);
	json_decref(list);
}

static void test_wrong_members(void **state)
{
	(void)state;
	refused(422, "POST", "/v1/sessions", "", "no body");
	refused(422, "POST", "/v1/sessions", "{}", "policy: ");
	refused(422, "POST", "/v1/sessions", "{\"policy\":\"p\"}", "absolute");
	refused(422, "POST", "/v1/sessions", "{\"policy\":\"/p\",\"name\":\"\"}", "name: is empty");
	refused(422, "POST", "/v1/sessions", "{\"policy\":\"/p\",\"ttl_s\":0}", "out of range");
	refused(422, "POST", "/v1/sessions", "{\"policy\":\"/p\",\"ttl_s\":31622401}",
	        "out of range");
	refused(422, "POST", "/v1/sessions", "{\"policy\":\"/p\",\"pid\":1}", "no such member");
	refused(422, "POST", "/v1/sessions", "{\"policy\":\"/p\",\"token\":\"x\"}",
	        "no such member");
	refused(422, "POST", "/v1/sessions", "{\"policy\":\"/p\",\"from\":\"10.0.0.0/8\"}",
	        "an array");
	refused(422, "POST", "/v1/sessions", "{\"policy\":\"/p\",\"from\":[7]}", "not a network");
	refused(422, "POST", "/v1/sessions/one/certificate", "", "is needed");
	refused(422, "POST", "/v1/sessions/one/certificate", "{}", "is needed");
	refused(422, "POST", "/v1/sessions/one/certificate", "{\"certificate_sha256\":7}",
	        "certificate_sha256");
	refused(422, "POST", "/v1/sessions/one/certificate",
	        "{\"certificate_sha256\":\"" HASH "0\"}", "64 lowercase hex digits");
	refused(422, "POST", "/v1/sessions/one/certificate",
	        "{\"certificate_sha256\":\"" HASH "\",\"ttl_s\":1}", "no such member");
	refused(422, "POST", "/v1/sessions", "{\"policy\":\"/p\",\"from\":[\"10.0.0.1/8\"]}",
	        "not a network");
	refused(422, "POST", "/v1/sessions/one/extend", "", "ttl_s: ");
	refused(422, "POST", "/v1/sessions/one/extend", "{}", "ttl_s: ");
	refused(422, "POST", "/v1/sessions", "{\"policy\":\"/p\",\"certificate_sha256\":\"ab\"}",
	        "64 lowercase hex digits");
	refused(422, "POST", "/v1/sessions", "{\"policy\":\"/p\",\"callback\":1}", "callback");
	refused(422, "POST", "/v1/sessions", "{\"policy\":\"/p\",\"by_address\":1}",
	        "true or false");
	refused(422, "POST", "/v1/tokens/revoke", "", "signer: ");
	refused(422, "POST", "/v1/tokens/revoke", "{\"signer\":\"a\"}", "id: ");
	refused(422, "POST", "/v1/tokens/revoke", "{\"signer\":\"\",\"id\":\"b\"}", "signer: ");
	refused(422, "POST", "/v1/tokens/revoke", "{\"signer\":\"a\",\"id\":7}", "a string");
	refused(422, "POST", "/v1/tokens/revoke", "{\"signer\":\"a\",\"id\":\"b\",\"x\":1}",
	        "no such");
	refused(422, "POST", "/v1/sessions/one/extend", "{\"ttl_s\":\"2h\"}", "whole number");
	refused(422, "POST", "/v1/sessions/one/extend", "{\"ttl_s\":0}", "out of range");
	refused(422, "POST", "/v1/sessions/one/extend", "{\"ttl\":5}", "no such member");
	refused(404, "GET", "/v1/sessions/two", "", "there is no session two");
	refused(405, "PUT", "/v1/sessions", "", "Allow: GET, POST");
	refused(405, "POST", "/v1/sessions/one", "", "Allow: GET, DELETE");
	refused(400, "DELETE", "/v1/sessions/one", "{}", "takes no body");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(test_created),
	        CASE(test_others),
	        CASE(test_wrong_members),
	};

	log_open("test_control_sessions", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

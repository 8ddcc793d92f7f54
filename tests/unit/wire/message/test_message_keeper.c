/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the keeper, of fetch and of the token: each one, and the bounds of single fields,
 * each one beyond its limit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "message_fixture.h"

static void ca_and_credential(void **state)
{
	struct message_ca ca = {SLICE("root"), SLICE("intermediate"), SLICE("key")};
	struct message_credential_get get = {POLICY_CREDENTIALS_MAX - 1};
	struct message_credential good = {
	        .credential = 3, .available = true, .ttl_ms = 60, .value = SLICE("v\0w")};
	struct message_credential bad = {.credential = 3, .error = SLICE("no such file")};
	struct message_credential nothing = {.credential = 3, .available = true};
	struct message_credential_seal seal = {SLICE("login"), SLICE("end"), SLICE("v"), true};

	(void)state;
	ROUNDTRIP(ca, &ca, NOTHING);
	ca.above_count = 2;
	ca.above[0] = ca.above[1] = SLICE("above");
	ROUNDTRIP(ca, &ca, NOTHING);
	ca.above_count = MESSAGE_CHAIN_MAX + 1;
	REFUSES_TO_ENCODE(ca, &ca);
	ca.above_count = 0;
	ca.key = longer(MESSAGE_KEY_MAX + 1);
	REFUSES_TO_ENCODE(ca, &ca);
	ca.key = (struct slice){NULL, 0};
	REFUSES_TO_ENCODE(ca, &ca);
	ROUNDTRIP(credential_get, &get, NOTHING);
	REFUSES_BYTE(credential_get, &get, HEAD_BYTES + 3, POLICY_CREDENTIALS_MAX);
	ROUNDTRIP(credential, &good, NOTHING);
	REFUSES_BYTE(credential, &good, HEAD_BYTES + 4, 2); /* neither true nor false */
	REFUSES_BYTE(credential, &good, HEAD_BYTES + 4, 0); /* a value that is not available */
	ROUNDTRIP(credential, &bad, NOTHING);
	ROUNDTRIP(credential, &nothing, NOTHING);
	ROUNDTRIP(credential_seal, &seal, NOTHING);
	seal.value = longer(MESSAGE_SEALED_MAX + 1);
	REFUSES_TO_ENCODE(credential_seal, &seal);
	seal.value = SLICE("");
	REFUSES_TO_ENCODE(credential_seal, &seal);
	seal.value = SLICE("v");
	seal.end = longer(MESSAGE_SEALED_END_MAX + 1);
	REFUSES_TO_ENCODE(credential_seal, &seal);
	seal.end = SLICE("");
	REFUSES_TO_ENCODE(credential_seal, &seal);
	REFUSES_BYTE(credential, &bad, HEAD_BYTES + 4, 1);
	good.value = longer(MESSAGE_VALUE_MAX);
	assert_true(message_credential_encode(again, sizeof(again), MESSAGE_STOP, ID, &good) >
	            MESSAGE_VALUE_MAX);
	good.value = longer(MESSAGE_VALUE_MAX + 1);
	REFUSES_TO_ENCODE(credential, &good);
	good.value = SLICE("both");
	good.error = SLICE("is too much");
	REFUSES_TO_ENCODE(credential, &good);
}

#define FINGERPRINT "0123456789abcdef0123456789abcdef"

static void keeper_cas(void **state)
{
	struct message_keeper_worker worker = {SLICE(""), false};
	struct message_keeper_ca_ask ask = {.what = MESSAGE_CA_INSTALL,
	        .configured = MESSAGE_CA_ROOT_FILE | MESSAGE_CA_KEY_FILE,
	        .problem = SLICE("no file"),
	        .overlap_s = MESSAGE_CA_OVERLAP_MAX_S,
	        .name = SLICE("node"),
	        .certificate = SLICE("pem"),
	        .root = SLICE("pem")};
	struct message_keeper_ca m = {.changed = true,
	        .error = SLICE("e"),
	        .notes = SLICE("n"),
	        .request = SLICE("r"),
	        .trusted = SLICE("t"),
	        .count = 1,
	        .unusable = true};

	(void)state;
	ROUNDTRIP(keeper_worker, &worker, NOTHING);
	worker.root = SLICE(FINGERPRINT);
	ROUNDTRIP(keeper_worker, &worker, NOTHING);
	worker.waits = true;
	ROUNDTRIP(keeper_worker, &worker, NOTHING);
	worker.root = longer(MESSAGE_FINGERPRINT_BYTES - 1);
	REFUSES_TO_ENCODE(keeper_worker, &worker);
	worker.root = longer(MESSAGE_FINGERPRINT_BYTES + 1);
	REFUSES_TO_ENCODE(keeper_worker, &worker);
	ROUNDTRIP(keeper_ca_ask, &ask, NOTHING);
	ask.what = MESSAGE_CA_WHATS;
	REFUSES_TO_ENCODE(keeper_ca_ask, &ask);
	ask.what = MESSAGE_CA_LOOK;
	ask.configured = 16;
	REFUSES_TO_ENCODE(keeper_ca_ask, &ask);
	ask.configured = 0;
	ask.overlap_s = MESSAGE_CA_OVERLAP_MAX_S + 1;
	REFUSES_TO_ENCODE(keeper_ca_ask, &ask);
	ask.overlap_s = 0;
	ask.certificate = longer(MESSAGE_PAPERS_MAX + 1);
	REFUSES_TO_ENCODE(keeper_ca_ask, &ask);
	ask.certificate = SLICE("a\0b");
	REFUSES_TO_ENCODE(keeper_ca_ask, &ask);
	m.cas[0].fingerprint = m.cas[0].root = SLICE(FINGERPRINT);
	m.cas[0].subject = m.cas[0].root_subject = SLICE("CN=x");
	m.cas[0].until_s = 7;
	ROUNDTRIP(keeper_ca, &m, NOTHING);
	m.cas[0].origin = MESSAGE_CA_ORIGINS;
	REFUSES_TO_ENCODE(keeper_ca, &m);
	m.cas[0].origin = 0;
	m.count = MESSAGE_CAS_MAX + 1;
	REFUSES_TO_ENCODE(keeper_ca, &m);
	m.count = 1;
	m.trusted = longer(MESSAGE_PEM_MAX + 1);
	REFUSES_TO_ENCODE(keeper_ca, &m);
}

static void keeper(void **state)
{
	struct message_keeper_sandbox m = {
	        .sandbox_id = 7, .sandbox = SLICE("box"), .credential_count = 2};
	struct message_keeper_root root = {
	        SLICE("-----BEGIN CERTIFICATE-----\n"), SLICE(FINGERPRINT), SLICE(FINGERPRINT)};
	struct message_source_open source_open = {7, 1};
	struct message_source opened = {.opened = true, .ttl_s = 60},
	                      refused = {.error = SLICE("a directory")},
	                      ending = {.error = SLICE("")};

	(void)state;
	m.credentials[0].name = SLICE("github");
	m.credentials[1].name = SLICE("npm");
	m.credentials[1].timeout_ms = 5000;
	ROUNDTRIP(keeper_sandbox, &m, NOTHING);
	m.names = longer(MESSAGE_CA_NAMES_MAX);
	ROUNDTRIP(keeper_sandbox, &m, NOTHING);
	m.names = longer(MESSAGE_CA_NAMES_MAX + 1);
	REFUSES_TO_ENCODE(keeper_sandbox, &m);
	m.names = SLICE("");
	m.credentials[1].name = SLICE("a\0b");
	REFUSES_TO_ENCODE(keeper_sandbox, &m);
	m.credentials[1].name = longer(MESSAGE_NAME_MAX + 1);
	REFUSES_TO_ENCODE(keeper_sandbox, &m);
	m.credentials[1].name = SLICE("npm");
	m.credential_count = POLICY_CREDENTIALS_MAX + 1;
	REFUSES_TO_ENCODE(keeper_sandbox, &m);
	ROUNDTRIP(keeper_root, &root, NOTHING);
	root.ca = longer(MESSAGE_FINGERPRINT_BYTES + 1);
	REFUSES_TO_ENCODE(keeper_root, &root);
	root.ca = longer(MESSAGE_FINGERPRINT_BYTES - 1);
	REFUSES_TO_ENCODE(keeper_root, &root);
	ROUNDTRIP(source_open, &source_open, NOTHING);
	ROUNDTRIP(source, &opened, NOTHING);
	ROUNDTRIP(source, &refused, NOTHING);
	REFUSES_BYTE(source, &refused, HEAD_BYTES, 1);
	ROUNDTRIP(source, &ending, NOTHING);
}

static void token(void **state)
{
	struct message_token_start m = {.uri = SLICE("pkcs11:token=a;object=b"),
	        .module = SLICE("/m.so"),
	        .user = SLICE(""),
	        .variable_count = 1,
	        .variables = {SLICE("A=b")},
	        .writable_count = MESSAGE_TOKEN_PAIRS_MAX};
	struct message_token_sign sign = {longer(MESSAGE_DIGEST_BYTES)};
	struct message_token_signature signature = {
	        .kind = MESSAGE_TOKEN_EC, .signature = longer(64), .error = SLICE("")};
	struct message_keeper_ca_ask ask = {.what = MESSAGE_CA_CHECK,
	        .configured = MESSAGE_CA_ROOT_FILE | MESSAGE_CA_TOKEN_KEY};

	(void)state;
	for (size_t i = 0; i < MESSAGE_TOKEN_PAIRS_MAX; i++)
		m.writable[i] = SLICE("/var");
	ROUNDTRIP(token_start, &m, NOTHING);
	m.writable_count++;
	REFUSES_TO_ENCODE(token_start, &m);
	m.writable_count = 0;
	m.variables[0] = SLICE("");
	REFUSES_TO_ENCODE(token_start, &m);
	m.variable_count = 0;
	m.module = SLICE("");
	REFUSES_TO_ENCODE(token_start, &m);
	ROUNDTRIP(token_sign, &sign, NOTHING);
	sign.digest = longer(MESSAGE_DIGEST_BYTES - 1);
	REFUSES_TO_ENCODE(token_sign, &sign);
	ROUNDTRIP(token_signature, &signature, NOTHING);
	signature.kind = 0;
	REFUSES_TO_ENCODE(token_signature, &signature);
	signature.kind = MESSAGE_TOKEN_KEYS;
	REFUSES_TO_ENCODE(token_signature, &signature);
	signature.kind = MESSAGE_TOKEN_RSA;
	signature.error = SLICE("both");
	REFUSES_TO_ENCODE(token_signature, &signature);
	signature.signature = SLICE("");
	ROUNDTRIP(token_signature, &signature, NOTHING);
	signature.error = SLICE("");
	REFUSES_TO_ENCODE(token_signature, &signature);
	signature.signature = longer(MESSAGE_SIGNATURE_MAX + 1);
	REFUSES_TO_ENCODE(token_signature, &signature);
	ROUNDTRIP(keeper_ca_ask, &ask, NOTHING);
	ask.configured |= MESSAGE_CA_KEY_FILE;
	REFUSES_TO_ENCODE(keeper_ca_ask, &ask);
}

static void fetch(void **state)
{
	struct message_fetch m = {.secret_count = 2,
	        .stores = true,
	        .argument_count = 2,
	        .arguments = {SLICE("vault"), SLICE("path=secret/data/x")},
	        .site_count = 2,
	        .sites = {{.url = SLICE("https://vault.test:8200"), .address_count = 1},
	                {.url = SLICE("https://login.test")}},
	        .server_count = 1};
	struct message_fetched fetched = {3600};
	struct message_fetch_failed failed = {30, true, SLICE("it answered 429")};

	(void)state;
	m.sites[0].addresses[0] = ip6(1);
	m.servers[0] = (struct config_server){ip4(53), 5353};
	ROUNDTRIP(fetch, &m, NOTHING);
	ROUNDTRIP(fetched, &fetched, NOTHING);
	fetched.lease = longer(MESSAGE_LEASE_MAX + 1);
	REFUSES_TO_ENCODE(fetched, &fetched);
	fetched = (struct message_fetched){.same = true, .renewable = true, .lease = SLICE("a/1")};
	ROUNDTRIP(fetched, &fetched, NOTHING);
	fetched.ttl_s = MESSAGE_FETCHED_TTL_MAX_S + 1;
	REFUSES_TO_ENCODE(fetched, &fetched);
	ROUNDTRIP(fetch_failed, &failed, NOTHING);
	failed.retry_s = MESSAGE_RETRY_MAX_S + 1;
	REFUSES_TO_ENCODE(fetch_failed, &failed);
	failed = (struct message_fetch_failed){.text = SLICE("")};
	REFUSES_TO_ENCODE(fetch_failed, &failed);
	failed.text = longer(MESSAGE_WHAT_MAX + 1);
	REFUSES_TO_ENCODE(fetch_failed, &failed);
	m.arguments[1] = SLICE("a\0b");
	REFUSES_TO_ENCODE(fetch, &m);
	m.secret_count = MESSAGE_FETCH_SECRETS_MAX + 1;
	m.arguments[1] = SLICE("a");
	REFUSES_TO_ENCODE(fetch, &m);
	m.secret_count = 0;
	m.arguments[1] = longer(MESSAGE_FETCH_ARGUMENT_MAX + 1);
	REFUSES_TO_ENCODE(fetch, &m);
	m.argument_count = 0;
	REFUSES_TO_ENCODE(fetch, &m);
	m.argument_count = MESSAGE_FETCH_ARGUMENTS_MAX + 1;
	REFUSES_TO_ENCODE(fetch, &m);
	m.argument_count = 1;
	m.sites[1].address_count = MESSAGE_FETCH_ADDRESSES_MAX + 1;
	REFUSES_TO_ENCODE(fetch, &m);
	m.sites[1].address_count = 0;
	m.site_count = MESSAGE_FETCH_SITES_MAX + 1;
	REFUSES_TO_ENCODE(fetch, &m);
	m.site_count = 0;
	REFUSES_TO_ENCODE(fetch, &m);
	m.site_count = 2;
	m.server_count = CONFIG_SERVERS_MAX + 1;
	REFUSES_TO_ENCODE(fetch, &m);
	m.server_count = 0;
	m.sites[1].url = SLICE("");
	REFUSES_TO_ENCODE(fetch, &m);
}

static void credentials(void **state)
{
	struct message_credential_ask ask = {1, 2, MESSAGE_CREDENTIAL_WHATS - 1, 3};
	struct message_worker_credentials worker = {.ended = 7, .count = 2};
	struct message_keeper_credentials keeper = {.error = SLICE("no"), .count = 1};

	(void)state;
	ROUNDTRIP(credential_ask, &ask, NOTHING);
	ask.what = MESSAGE_CREDENTIAL_WHATS;
	REFUSES_TO_ENCODE(credential_ask, &ask);
	ask.what = 0;
	ask.credential = POLICY_CREDENTIALS_MAX;
	REFUSES_TO_ENCODE(credential_ask, &ask);
	worker.credentials[1].uses = UINT64_MAX;
	ROUNDTRIP(worker_credentials, &worker, NOTHING);
	worker.count = POLICY_CREDENTIALS_MAX + 1;
	REFUSES_TO_ENCODE(worker_credentials, &worker);
	keeper.credentials[0].mark = SLICE("12345678");
	keeper.credentials[0].error = longer(MESSAGE_CREDENTIAL_ERROR_MAX);
	keeper.mark = SLICE("12345678");
	ROUNDTRIP(keeper_credentials, &keeper, NOTHING);
	keeper.credentials[0].error = longer(MESSAGE_CREDENTIAL_ERROR_MAX + 1);
	REFUSES_TO_ENCODE(keeper_credentials, &keeper);
	keeper.credentials[0].error = SLICE("");
	keeper.credentials[0].mark = SLICE("1234567");
	REFUSES_TO_ENCODE(keeper_credentials, &keeper);
	keeper.credentials[0].mark = SLICE("123456789");
	REFUSES_TO_ENCODE(keeper_credentials, &keeper);
	keeper.credentials[0].mark = SLICE("");
	keeper.error = longer(MESSAGE_WHAT_MAX + 1);
	REFUSES_TO_ENCODE(keeper_credentials, &keeper);
	keeper.error = SLICE("");
	keeper.count = POLICY_CREDENTIALS_MAX + 1;
	REFUSES_TO_ENCODE(keeper_credentials, &keeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(ca_and_credential),
	        cmocka_unit_test(keeper),
	        cmocka_unit_test(token),
	        cmocka_unit_test(fetch),
	        cmocka_unit_test(credentials),
	        cmocka_unit_test(keeper_cas),
	};

	memset(long_text, 'x', sizeof(long_text));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's program as its supervisor sees it: certificates, questions about its state, its end.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/x509.h>
#include <openssl/pem.h>

#include "keeper_fixture.h"
#include "vethguard/tls/ca.h"

/* --- certificates --- */

static X509 *parse(struct slice der)
{
	const unsigned char *p = (const unsigned char *)der.p;
	X509 *x = d2i_X509(NULL, &p, (long)der.n);

	assert_non_null(x);
	assert_ptr_equal(p, der.p + der.n);
	return x;
}

static int verify(X509 *root, X509 *certificate)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *context = X509_STORE_CTX_new();
	int rc;

	X509_STORE_add_cert(store, root);
	X509_STORE_CTX_init(context, store, certificate, NULL);
	rc = X509_verify_cert(context);
	X509_STORE_CTX_free(context);
	X509_STORE_free(store);
	return rc;
}

static void test_ca_chain(void **state)
{
	struct fixture *f = *state;
	int a = fixture_sandbox(f, 1, 0, 0, 0), b = fixture_sandbox(f, 2, 0, 0, 0);
	struct message_ca ca;
	X509 *root, *one, *two;
	struct ca *usable;
	char name[128];

	get_ca(f, a, &ca);
	root = parse(ca.root);
	one = parse(ca.intermediate);
	usable = ca_from_der(ca.intermediate, ca.key);
	assert_non_null(usable);
	ca_free(usable);
	get_ca(f, b, &ca);
	two = parse(ca.intermediate);
	X509 *root_again = parse(ca.root);
	assert_int_equal(X509_cmp(root, root_again), 0);
	assert_int_equal(verify(root, one), 1);
	assert_int_equal(verify(root, two), 1);
	assert_int_not_equal(X509_cmp(one, two), 0);
	assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(one), X509_get0_pubkey(two)), 0);
	X509_NAME_get_text_by_NID(X509_get_subject_name(root), NID_commonName, name, sizeof(name));
	assert_int_equal(strncmp(name, "vethguard sandbox CA ", 21), 0);
	X509_NAME_get_text_by_NID(X509_get_subject_name(one), NID_commonName, name, sizeof(name));
	assert_int_equal(strncmp(name, "vethguard intermediate CA ", 26), 0);
	X509_free(root);
	X509_free(root_again);
	X509_free(one);
	X509_free(two);
	close(a);
	close(b);
}

/* --- before the keeper knows a worker's sandbox --- */

static void test_worker_in_store(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_worker(f, 3);
	struct message_ca ca;

	get_ca(f, worker, &ca);
	fixture_expect_silence(f->supervisor);
	fixture_describe(f, 3, 1, 0, 0);
	fixture_expect_root(f);
	fixture_fetch(f, worker, 3, 0, "a-value");
	close(worker);
}

/* The supervisor may not know of it yet. */
static void test_described_when_it_has_gone(void **state)
{
	struct fixture *f = *state;
	struct message_ca ca;
	int other = fixture_worker(f, 2);

	close(fixture_worker(f, 3));
	get_ca(f, other, &ca);
	fixture_describe(f, 3, 1, 0, 0);
	fixture_expect_root(f);
	fixture_describe(f, 2, 1, 0, 0);
	fixture_expect_root(f);
	fixture_fetch(f, other, 2, 0, "a-value");
	close(other);
}

static void test_look(void **state)
{
	look(*state);
}

/* --- the supervisor --- */

static void test_stop(void **state)
{
	struct ipc_message message;
	struct fixture f;
	uint8_t m[64];
	int worker;

	(void)state;
	fixture_start(&f);
	worker = fixture_sandbox(&f, 1, 1, 0, 0);
	assert_int_equal(ipc_send_blocking(f.supervisor, m,
	                         message_empty(m, sizeof(m), MESSAGE_STOP, 9), NULL, 0),
	        0);
	fixture_expect(f.supervisor, MESSAGE_STOPPED, &message);
	assert_int_equal(message.head.id, 9);
	fixture_expect_end(worker);
	close(worker);
	assert_int_equal(fixture_wait(&f), 0);
	close(f.supervisor);
}

static void test_broken_supervisor(void **state)
{
	static const enum message_type types[] = {MESSAGE_KEEPER_START, MESSAGE_CA_GET,
	        MESSAGE_CREDENTIAL_GET, MESSAGE_KEEPER_SANDBOX, MESSAGE_SOURCE,
	        MESSAGE_WORKER_START};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct fixture f;
		uint8_t m[64];
		int worker;

		fixture_start(&f);
		worker = fixture_sandbox(&f, 1, 1, 0, 0);
		ipc_send_blocking(
		        f.supervisor, m, message_empty(m, sizeof(m), types[i], 9), NULL, 0);
		fixture_expect_end(f.supervisor);
		fixture_expect_end(worker);
		assert_int_equal(fixture_wait(&f), 125);
		close(worker);
		close(f.supervisor);
	}
}

/* A worker comes with one descriptor, its sandbox with none; a look has no body. */
static void test_worker_told_wrongly(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct message_keeper_sandbox box = {.sandbox_id = 1, .sandbox = SLICE("box")};
		struct fixture f;
		uint8_t m[64];
		int worker, fds[2];

		fixture_start(&f);
		worker = fixture_sandbox(&f, 1, 1, 0, 0);
		fds[0] = fds[1] = worker;
		if (i < 2)
			ipc_send_blocking(f.supervisor, m,
			        message_empty(m, sizeof(m), MESSAGE_KEEPER_WORKER, 9), fds,
			        i == 0 ? 0 : 2);
		else if (i == 3)
			ipc_send_blocking(f.supervisor, m,
			        message_empty(m, sizeof(m), MESSAGE_KEEPER_CHECK, 9) + 1, NULL, 0);
		else
			fixture_send_sandbox(&f, &box, worker);
		fixture_expect_end(f.supervisor);
		assert_int_equal(fixture_wait(&f), 125);
		close(worker);
		close(f.supervisor);
	}
}

static void test_wrong_first_message(void **state)
{
	struct fixture f;
	uint8_t m[64];

	(void)state;
	fixture_spawn(&f);
	ipc_send_blocking(f.supervisor, m, message_empty(m, sizeof(m), MESSAGE_STOP, 1), NULL, 0);
	assert_int_equal(fixture_wait(&f), 125);
	close(f.supervisor);
	fixture_spawn(&f);
	assert_int_equal(fixture_end(&f), 125);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_ca_chain),
	        TEST(test_worker_in_store),
	        TEST(test_described_when_it_has_gone),
	        TEST(test_look),
	        cmocka_unit_test(test_stop),
	        cmocka_unit_test(test_broken_supervisor),
	        cmocka_unit_test(test_worker_told_wrongly),
	        cmocka_unit_test(test_wrong_first_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Keystores byte by byte: an old one with one more entry, one made anew, and files that are not
 * keystores. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "cli/guest/mounts.h"
#include "vethguard/base/cursor.h"
#include "vethguard/tls/bundle.h"
#include "vethguard/tls/ca.h"

static struct buf pem;

/* Entries of a store; checks its frame, its digest and that the last alias is "vethguard". */
static uint32_t entries_of(struct slice store)
{
	static const uint8_t prefix[] = "\0c\0h\0a\0n\0g\0e\0i\0tMighty Aphrodite";
	struct slice parts[2] = {
	        slice_of(prefix, sizeof(prefix) - 1), slice_of(store.p, store.n - 20)};
	struct reader r = reader_over(store.p, store.n - 20);
	struct slice alias = {NULL, 0};
	uint8_t sum[BUNDLE_SHA1_BYTES];
	uint32_t count;

	assert_int_equal(bundle_sha1(parts, 2, sum), 0);
	assert_memory_equal(sum, store.p + store.n - 20, 20);
	assert_int_equal(reader_u32(&r), 0xfeedfeed);
	assert_int_equal(reader_u32(&r), 2);
	count = reader_u32(&r);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(reader_u32(&r), 2);
		alias = reader_vector(&r, 2, 65535);
		reader_u64(&r);
		assert_true(slice_equals(reader_vector(&r, 2, 65535), SLICE("X.509")));
		assert_true(reader_vector(&r, 4, 65536).n > 100);
	}
	assert_true(reader_done(&r));
	assert_true(slice_equals(alias, SLICE("vethguard")));
	return count;
}

static void an_entry_is_added(void **state)
{
	struct buf first, second;

	(void)state;
	buf_init(&first, 1 << 20);
	buf_init(&second, 1 << 20);
	assert_int_equal(java_store_add(SLICE(""), SLICE(""), buf_slice(&pem), &first), 0);
	assert_int_equal(entries_of(buf_slice(&first)), 1);
	assert_int_equal(java_store_add(buf_slice(&first), SLICE(""), buf_slice(&pem), &second), 0);
	assert_int_equal(entries_of(buf_slice(&second)), 2);
	buf_fini(&first);
	buf_fini(&second);
}

static void another_format_is_replaced_from_the_bundle(void **state)
{
	struct buf bundle, out;

	(void)state;
	buf_init(&bundle, 1 << 20);
	buf_init(&out, 1 << 20);
	for (int i = 0; i < 3; i++) {
		buf_append_slice(&bundle, SLICE("# a comment\n"));
		buf_append_slice(&bundle, buf_slice(&pem));
	}
	/* One of these blocks is not a certificate and is skipped. */
	buf_append_slice(
	        &bundle, SLICE("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"));
	assert_int_equal(
	        java_store_add(SLICE("\x30\x82 pkcs12"), buf_slice(&bundle), buf_slice(&pem), &out),
	        0);
	assert_int_equal(entries_of(buf_slice(&out)), 4);
	buf_fini(&bundle);
	buf_fini(&out);
}

static void what_does_not_fit_or_is_no_certificate_is_refused(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 64);
	assert_int_not_equal(java_store_add(SLICE(""), SLICE(""), buf_slice(&pem), &out), 0);
	buf_fini(&out);
	buf_init(&out, 1 << 20);
	assert_int_equal(
	        java_store_add(SLICE(""), SLICE(""), SLICE("no certificate"), &out), -ENOENT);
	buf_fini(&out);
	/* Truncated stores and a full counter are not stores of this format: the store is made
	 * anew. */
	for (size_t n = 0; n < 31; n++) {
		static const uint8_t head[32] = {0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 1};

		buf_init(&out, 1 << 20);
		assert_int_equal(
		        java_store_add(slice_of(head, n), SLICE(""), buf_slice(&pem), &out), 0);
		assert_int_equal(entries_of(buf_slice(&out)), 1);
		buf_fini(&out);
	}
}

static void subject_hashes(void **state)
{
	char hash[BUNDLE_HASH_TEXT];

	(void)state;
	assert_int_equal(bundle_subject_hash(buf_slice(&pem), hash), 0);
	assert_int_equal(strspn(hash, "0123456789abcdef"), 8);
	assert_int_equal(bundle_subject_hash(SLICE(""), hash), -EBADMSG);
	assert_int_equal(bundle_subject_hash(SLICE("-----BEGIN CERTIFICATE-----"), hash), -EBADMSG);
	assert_int_equal(
	        bundle_subject_hash(
	                SLICE("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"), hash),
	        -EBADMSG);
	assert_int_equal(
	        bundle_subject_hash(slice_of(buf_bytes(&pem), pem.len / 2), hash), -EBADMSG);
}

static int open_pem(void **state)
{
	struct ca *ca = ca_new_root(SLICE("vethguard test root"), 30);
	int rc;

	(void)state;
	buf_init(&pem, 8192);
	rc = ca == NULL ? -1 : ca_pem_append(ca_certificate_der(ca), &pem);
	ca_free(ca);
	return rc;
}

static int close_pem(void **state)
{
	(void)state;
	buf_fini(&pem);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_entry_is_added),
	        cmocka_unit_test(another_format_is_replaced_from_the_bundle),
	        cmocka_unit_test(what_does_not_fit_or_is_no_certificate_is_refused),
	        cmocka_unit_test(subject_hashes),
	};

	return cmocka_run_group_tests(tests, open_pem, close_pem);
}

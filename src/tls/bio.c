/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: OpenSSL asks a BIO for ciphertext and gives it ciphertext. This BIO reads
 * directly from the bytes that the owner lent with tls_feed() and writes directly to the owner's
 * output buffer. Without read-ahead OpenSSL asks for exactly one record header and then one record
 * body, each of which goes into its own record buffer: one copy in, one copy out, none in between.
 *
 * An empty input always means "try again": only the owner knows whether the peer's TCP stream has
 * ended, so OpenSSL never sees an end of file.
 */
#include "tls/private.h"

#include <openssl/bio.h>
#include <pthread.h>

static BIO_METHOD *method;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int bio_read(BIO *bio, char *out, size_t cap, size_t *n)
{
	struct tls *tls = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (tls->in_left == 0) {
		BIO_set_retry_read(bio);
		return 0;
	}
	if (cap > tls->in_left)
		cap = tls->in_left;
	memcpy(out, tls->in, cap);
	tls->in += cap;
	tls->in_left -= cap;
	*n = cap;
	return 1;
}

static int bio_write(BIO *bio, const char *p, size_t len, size_t *n)
{
	struct tls *tls = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	int rc = tls->out ? buf_append(tls->out, p, len) : 0;
	if (rc < 0) {
		tls->output_error = rc;
		return 0;
	}
	*n = len;
	return 1;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	(void)bio;
	(void)num;
	(void)ptr;
	return cmd == BIO_CTRL_FLUSH;
}

static void make_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "lent memory");

	if (!m)
		return;
	if (!BIO_meth_set_read_ex(m, bio_read) || !BIO_meth_set_write_ex(m, bio_write) ||
	        !BIO_meth_set_ctrl(m, bio_ctrl)) {
		BIO_meth_free(m);
		return;
	}
	method = m;
}

BIO *tls_bio_new(struct tls *tls)
{
	pthread_once(&once, make_method);
	BIO *bio = method ? BIO_new(method) : NULL;
	if (!bio)
		return NULL;
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	return bio;
}

struct tls *tls_of_ssl(const SSL *ssl)
{
	return BIO_get_data(SSL_get_rbio(ssl));
}

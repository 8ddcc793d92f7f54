/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a connection is one SSL object over the memory BIO of bio.c. After the
 * handshake takeover.c takes over its record layer where that is possible. Every call into
 * OpenSSL ends in one of four ways (enum tls_status). CLOSED and ERROR are final and remembered, so
 * that a later call repeats them instead of asking OpenSSL again. The thread's error queue is
 * emptied before each call that may look at it, and a failure is turned into one static text at
 * once: no error of one connection shows up in another.
 */
#include "tls/elsewhere.h"
#include "tls/record/record.h"
#include "tls/session.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>

/* The most that one record adds to its plaintext: header, IV, MAC and padding (TLS 1.2, AES-CBC
 * with SHA-384). */
#define RECORD_OVERHEAD 85

/* Stops a flood. OpenSSL processes its input to the end, so the input is emptied. */
static void on_message(
        int sent, int version, int type, const void *p, size_t n, SSL *ssl, void *arg)
{
	struct tls *tls = tls_of_ssl(ssl);

	(void)version, (void)arg;
	takeover_on_message(tls, sent, type, p, n);
	if (sent || type != SSL3_RT_HANDSHAKE || !tls->established || tls_message_passes(tls))
		return;
	tls->in_left = 0;
}

void tls_context_setup(SSL_CTX *ctx)
{
	SSL_CTX_set_msg_callback(ctx, on_message);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
	SSL_CTX_set_read_ahead(ctx, 0);
}

struct tls *tls_new(SSL_CTX *ctx, struct slice alpn, struct buf *out)
{
	struct tls *tls = calloc(1, sizeof(*tls));
	BIO *bio;

	if (!tls)
		return NULL;
	tls->alpn = alpn;
	tls->out = out;
	tls->ssl = SSL_new(ctx);
	bio = tls->ssl ? tls_bio_new(tls) : NULL;
	if (!bio) {
		SSL_free(tls->ssl);
		free(tls);
		ERR_clear_error();
		return NULL;
	}
	SSL_set_bio(tls->ssl, bio, bio);
	return tls;
}

void tls_free(struct tls *tls)
{
	if (!tls)
		return;
	elsewhere_fini(tls);
	tls_ssl_free(tls);
	record_layer_free(tls->layer);
	session_slot_release(tls->sessions);
	free(tls);
}

void tls_feed(struct tls *tls, const uint8_t *p, size_t n)
{
	tls->in = p;
	tls->in_left = n;
}

size_t tls_input_left(const struct tls *tls)
{
	return tls->in_left;
}

void tls_set_output(struct tls *tls, struct buf *out)
{
	tls->out = out;
}

static void errors_clear(void)
{
	if (ERR_peek_error() != 0)
		ERR_clear_error();
}

/* OpenSSL's texts are kept unless they would mislead. */
static const char *reason_text(unsigned long error)
{
	if (error == 0)
		return "connection failed";
	if (ERR_GET_LIB(error) == ERR_LIB_SSL) {
		switch (ERR_GET_REASON(error)) {
		case SSL_R_HTTP_REQUEST:
		case SSL_R_HTTPS_PROXY_REQUEST:
			return "plain HTTP where TLS was expected";
		case SSL_R_WRONG_VERSION_NUMBER:
		case SSL_R_BAD_RECORD_TYPE:
			return "the peer does not speak TLS";
		case SSL_R_CALLBACK_FAILED:
			return "no certificate for this name";
		case SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL:
			return "tlsv1 alert no application protocol"; /* 3.0.13 has no words */
		default:
			break;
		}
	}
	const char *text = ERR_reason_error_string(error);
	return text ? text : "TLS failure";
}

/* Explains to the reader of the log that an upstream refused everything that was offered. */
static const char *upstream_text(unsigned long error, bool shown)
{
	switch (ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0) {
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_WRONG_SSL_VERSION:
	case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
		return "the server speaks neither TLS 1.2 nor TLS 1.3";
	case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
	case SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY:
		return shown ? "the server refused the handshake: offered were TLS 1.3, and TLS "
		               "1.2 with ECDHE and AES or ChaCha20, with the client's certificate"
		             : "the server refused the handshake: offered were TLS 1.3, and TLS "
		               "1.2 with ECDHE and AES or ChaCha20, without a client certificate";
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
		return shown ? "the server refused the client's certificate" : reason_text(error);
	default:
		return reason_text(error);
	}
}

/* Takes all errors and returns the last one, which says most; but from OpenSSL 3.2 on the last one
 * may only say that there was one before. */
static unsigned long take_last_error(void)
{
	unsigned long error, told = 0;

	while ((error = ERR_get_error()) != 0) {
#ifdef SSL_R_RECORD_LAYER_FAILURE
		if (told && ERR_GET_LIB(error) == ERR_LIB_SSL &&
		        ERR_GET_REASON(error) == SSL_R_RECORD_LAYER_FAILURE)
			continue;
#endif
		told = error;
	}
	return told;
}

static enum tls_status take_error(struct tls *tls)
{
	unsigned long error = take_last_error();

	if (tls->output_error != 0) {
		tls_fail(tls,
		        tls->output_error == -ENOBUFS ? "output buffer is full" : "out of memory");
	} else if (ERR_GET_LIB(error) == ERR_LIB_SSL &&
	           ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
		tls_fail(tls, X509_verify_cert_error_string(SSL_get_verify_result(tls->ssl)));
	} else {
		tls_fail(tls, tls->client ? upstream_text(error, SSL_get_certificate(tls->ssl))
		                          : reason_text(error));
	}
	return TLS_ERROR;
}

/* The status of a call that did not succeed. */
static enum tls_status take_status(struct tls *tls, int rc)
{
	switch (SSL_get_error(tls->ssl, rc)) {
	case SSL_ERROR_WANT_READ:
		return TLS_WANT_READ;
	case SSL_ERROR_ZERO_RETURN:
		return tls->final = TLS_CLOSED;
	default:
		return take_error(tls);
	}
}

/* Returns the entry of the list that equals name, or an empty slice. */
static struct slice alpn_find(struct slice list, struct slice name)
{
	while (list.n > 0) {
		size_t n = (uint8_t)list.p[0];
		if (n > list.n - 1)
			break;
		if (slice_equals(slice_of(list.p + 1, n), name))
			return slice_of(list.p + 1, n);
		list.p += 1 + n;
		list.n -= 1 + n;
	}
	return slice_of("", 0);
}

bool tls_alpn_contains(struct slice list, struct slice name)
{
	return name.n > 0 && alpn_find(list, name).n > 0;
}

enum tls_status tls_handshake(struct tls *tls)
{
	bool waits;

	if (tls->established && tls->final != TLS_ERROR)
		return TLS_OK;
	if (tls->final != TLS_OK)
		return tls->final;
	errors_clear();
	takeover_watch(tls);
	int rc = elsewhere_do_handshake(tls, &waits);
	takeover_unwatch();
	if (waits)
		return TLS_WANT_SIGNATURE;
	if (rc != 1)
		return take_status(tls, rc);
	errors_clear();
	/* OpenSSL's client accepts any protocol that the server names; RFC 7301 section 3.1 allows
	 * only one that was offered. */
	struct slice told = tls_alpn(tls);
	tls->chosen = alpn_find(tls->alpn, told);
	if (told.n > 0 && !tls->chosen.n)
		return tls_fail(
		        tls, "the server chose an application protocol that was not offered");
	tls->established = true;
	tls_note_certificate(tls);
	return TLS_OK;
}

/* Calls SSL_read_ex() once and returns its status. */
static enum tls_status read_once(struct tls *tls, uint8_t *out, size_t cap, size_t *n)
{
	errors_clear();
	int rc = SSL_read_ex(tls->ssl, out, cap, n);
	if (rc == 1) {
		tls_count_content(tls, *n);
		return TLS_OK;
	}
	*n = 0;
	if (tls->final == TLS_ERROR) /* a flood */
		return TLS_ERROR;
	return take_status(tls, rc);
}

bool tls_is_taken_over(struct tls *tls)
{
	if (tls->ssl && tls->layer && tls->established)
		takeover(tls);
	return !tls->ssl;
}

enum tls_status tls_read(struct tls *tls, uint8_t *out, size_t cap, size_t *n)
{
	enum tls_status status = TLS_OK;

	*n = 0;
	if (tls->final != TLS_OK)
		return tls->final;
	if (!tls->established) {
		status = tls_handshake(tls);
		if (status != TLS_OK)
			return status;
	}
	if (tls_is_taken_over(tls))
		return record_read(tls, out, cap, n);
	/* OpenSSL returns one record at a time; the owner wants all that fits. If no byte is left
	 * to look at, another call would only cost time. */
	while (*n < cap) {
		size_t got;
		if (tls->in_left == 0 && !SSL_has_pending(tls->ssl)) {
			status = TLS_WANT_READ;
			break;
		}
		status = read_once(tls, out + *n, cap - *n, &got);
		if (status != TLS_OK)
			break;
		*n += got;
	}
	return *n > 0 ? TLS_OK : status;
}

enum tls_status tls_write(struct tls *tls, const uint8_t *p, size_t n)
{
	size_t records = n / SSL3_RT_MAX_PLAIN_LENGTH + 1;
	size_t written;

	if (tls->final == TLS_ERROR)
		return TLS_ERROR;
	if (n == 0)
		return TLS_OK;
	/* Reserve room for everything at once, so that the buffer grows at most once. */
	if (records > 1 && !buf_reserve(tls->out, n + records * RECORD_OVERHEAD))
		return tls_fail(tls, "output buffer is full");
	if (tls_is_taken_over(tls))
		return record_write(tls, p, n);
	errors_clear();
	int rc = SSL_write_ex(tls->ssl, p, n, &written);
	if (rc == 1)
		return TLS_OK;
	if (take_status(tls, rc) == TLS_ERROR)
		return TLS_ERROR;
	return tls_fail(tls, "write before the handshake was done");
}

void tls_close(struct tls *tls)
{
	if (!tls->established || tls->final == TLS_ERROR)
		return;
	if (tls_is_taken_over(tls)) {
		record_close(tls);
		return;
	}
	errors_clear();
	SSL_shutdown(tls->ssl);
	errors_clear();
}

struct slice tls_alpn(const struct tls *tls)
{
	const unsigned char *p;
	unsigned n;

	if (tls->established)
		return tls->chosen;
	SSL_get0_alpn_selected(tls->ssl, &p, &n);
	return slice_of(p, n);
}

uint16_t tls_version(const struct tls *tls)
{
	return tls->ssl ? (uint16_t)SSL_version(tls->ssl) : TLS1_3_VERSION;
}

const char *tls_error_text(const struct tls *tls)
{
	return tls->error ? tls->error : "";
}

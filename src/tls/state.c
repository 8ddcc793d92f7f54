/* SPDX-License-Identifier: Apache-2.0 */
/* State of a connection that tls.c, record.c and takeover.c share: whether it has failed, how many
 * messages without content its peer has sent, the client's certificate, and the end of OpenSSL's
 * part. */
#include <time.h>

#include "tls/private.h"

/* Bound on post-handshake messages of TLS (new keys, tickets) with less content than
 * MESSAGES_CONTENT between them. Well-meaning peers send a few tickets, and rarely a new key. Each
 * message costs its reader more than its sender, and nothing else has its turn while more of them
 * are there. */
#define MESSAGES_MAX 32
#define MESSAGES_CONTENT 4096
#define DAY_S 86400

enum tls_status tls_fail(struct tls *tls, const char *text)
{
	tls->final = TLS_ERROR;
	if (!tls->error)
		tls->error = text;
	return TLS_ERROR;
}

bool tls_message_passes(struct tls *tls)
{
	if (++tls->messages <= MESSAGES_MAX)
		return true;
	tls_fail(tls, "a flood of TLS messages that carry nothing");
	return false;
}

void tls_count_content(struct tls *tls, size_t n)
{
	tls->content += n;
	if (tls->content < MESSAGES_CONTENT)
		return;
	tls->content = 0;
	tls->messages = 0;
}

void tls_ssl_free(struct tls *tls)
{
	/* Otherwise SSL_free() would invalidate the session of a connection that ended without
	 * close_notify, which TLS 1.2 and 1.3 do not require. */
	if (tls->ssl && tls->established && tls->final != TLS_ERROR)
		SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(tls->ssl);
	tls->ssl = NULL;
}

void tls_note_certificate(struct tls *tls)
{
	X509 *certificate = tls->server ? SSL_get0_peer_certificate(tls->ssl) : NULL;
	int days, seconds;
	unsigned n = 0;

	if (!certificate ||
	        ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) != 1 ||
	        X509_digest(certificate, EVP_sha256(), tls->certificate_hash, &n) != 1 ||
	        n != TLS_CERTIFICATE_HASH_BYTES)
		return;
	tls->certificate_until_s = (int64_t)time(NULL) + (int64_t)days * DAY_S + seconds;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* State of a connection that tls.c, record.c and takeover.c share: whether it has failed, how many
 * messages without content its peer has sent, and the end of OpenSSL's part. */
#include "tls/private.h"

/* Bound on post-handshake messages of TLS (new keys, tickets) with less content than
 * MESSAGES_CONTENT between them. Well-meaning peers send a few tickets, and rarely a new key. Each
 * message costs its reader more than its sender, and nothing else has its turn while more of them
 * are there. */
#define MESSAGES_MAX 32
#define MESSAGES_CONTENT 4096

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

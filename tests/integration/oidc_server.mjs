// SPDX-License-Identifier: Apache-2.0
// oidc-provider with the lab's certificate: node oidc_server.mjs FOLDER-OF-MODULES CERTIFICATE KEY ADDRESS PORT ISSUER
// Two clients: a program with a secret, and one for devices. Whoever asks is logged in as "agent" at once. Each token that is made is
// printed.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { pathToFileURL } from 'node:url';

const [folder, certificate, key, address, port, issuer] = process.argv.slice(2);
const require = createRequire(folder + '/');
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));
const grants = ['authorization_code', 'refresh_token', 'client_credentials', 'urn:ietf:params:oauth:grant-type:device_code'];
const provider = new Provider(issuer, {
	clients: [{ client_id: 'agent', client_secret: 'agents-own-secret', grant_types: grants, redirect_uris: ['https://localhost/done'],
		response_types: ['code'], token_endpoint_auth_method: 'client_secret_post' }],
	features: { deviceFlow: { enabled: true }, revocation: { enabled: true }, introspection: { enabled: true }, clientCredentials: { enabled: true },
		devInteractions: { enabled: false } },
	findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
	issueRefreshToken: async () => true,
	pkce: { required: () => false },
	ttl: { AccessToken: 3600, DeviceCode: 600, RefreshToken: 3600, Grant: 3600, Session: 3600, Interaction: 600, IdToken: 3600, ClientCredentials: 600 },
	interactions: { url: () => '/interaction' },
	async loadExistingGrant(ctx) {
		const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: 'agent' });
		grant.addOIDCScope('openid offline_access');
		await grant.save();
		return grant;
	},
});
provider.proxy = true;
// A person who is there and agrees to everything: what a browser would do is done here.
async function person(request, response) {
	if (request.url.startsWith('/confirm?')) {
		const code = await provider.DeviceCode.findByUserCode(new URL(request.url, issuer).searchParams.get('code').replace('-', ''));
		const grant = new provider.Grant({ clientId: 'agent', accountId: 'agent' });
		grant.addOIDCScope('openid offline_access');
		Object.assign(code, { accountId: 'agent', grantId: await grant.save(), scope: 'openid offline_access', authTime: Math.floor(Date.now() / 1000),
			claims: {}, acr: undefined, amr: undefined });
		await code.save();
		response.end('{}');
		return true;
	}
	if (request.url.startsWith('/code')) {
		const client = await provider.Client.find('agent');
		const grant = new provider.Grant({ clientId: 'agent', accountId: 'agent' });
		grant.addOIDCScope('openid offline_access');
		const code = new provider.AuthorizationCode({ accountId: 'agent', client, grantId: await grant.save(), scope: 'openid offline_access',
			redirectUri: 'https://localhost/done', authTime: Math.floor(Date.now() / 1000), claims: {}, gty: 'authorization_code' });
		response.end(await code.save());
		return true;
	}
	return false;
}
const callback = provider.callback();
provider.on('grant.success', (ctx) => console.log(JSON.stringify({ grant: ctx.oidc.params.grant_type, tokens: ctx.body })));
provider.on('grant.error', (ctx, error) => console.log(JSON.stringify({ refused: String(error), detail: error.error_description })));
provider.on('server_error', (ctx, error) => console.log(JSON.stringify({ failed: String(error.stack) })));
createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, async (request, response) => {
	if (!await person(request, response)) callback(request, response);
}).listen(Number(port), address, () => console.log('ready'));

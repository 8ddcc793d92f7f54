// SPDX-License-Identifier: Apache-2.0
// oauth2-mock-server with the lab's certificate: node oauth2_server.mjs FOLDER-OF-MODULES CERTIFICATE KEY ADDRESS PORT
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, certificate, key, address, port] = process.argv.slice(2);
const require = createRequire(folder + '/');
const { OAuth2Server } = await import(pathToFileURL(require.resolve('oauth2-mock-server')));
const server = new OAuth2Server(key, certificate);
await server.issuer.keys.generate('RS256');
server.service.on('beforeResponse', (answer, request) => {
	console.log(JSON.stringify({ grant: request.body.grant_type, assertion: !!request.body.client_assertion,
		basic: !!request.headers.authorization, token: answer.body.access_token, refresh: answer.body.refresh_token ?? null }));
});
await server.start(Number(port), address);
console.log('ready');

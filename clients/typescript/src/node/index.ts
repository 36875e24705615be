/** For Node.js: whose certificate is taken. */
export { nodeFetch } from './fetch.ts'
export { type Trust, UntrustedCertificate } from './trust.ts'
export { nodeWebSocket, type WsClass } from './web-socket.ts'

// Requests without a handshake, for transports: `_meta` and `subscriptions/listen`.
export { addListen } from './listen.ts'
export { namesOwnVersion, type RequestMeta, readRequestMeta, unsupported } from './request-meta.ts'

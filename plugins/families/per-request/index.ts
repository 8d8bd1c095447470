// What the transports share that serve requests one by one, as 2026-07-28 has them, and no plugin itself: what a request
// says of itself, and `subscriptions/listen`. Its members are named in test/support/import-lines.ts; they import this alone.
export { addListen } from './listen.ts'
export { namesOwnVersion, type RequestMeta, readRequestMeta, unsupported } from './request-meta.ts'

// The one spelling of an address, by which rate-limit, audit and metrics count; no plugin itself.
export { addressKey } from '../../../core/auth.ts'

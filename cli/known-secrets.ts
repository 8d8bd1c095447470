// Every secret that this process has read: tokens, client secrets, keys. What it prints about failures is looked at with
// them before it leaves, because servers write back what they were sent, in pages and errors of their own making.
import { createSecrets } from '../client/secrets.ts'

export const knownSecrets = createSecrets()

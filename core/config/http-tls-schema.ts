// `http.tls` as JSON Schema: what a host needs to speak HTTPS itself. For host-schema.ts.
import { closed, duration, text } from './schema-parts.ts'

const secretPem = (description: string) => text(description, { writeOnly: true })

export const httpTls = closed(
  {
    cert: text('The certificate, then its intermediates: PEM, or the path of a PEM file.', {
      examples: ['./tls/fullchain.pem'],
    }),
    key: secretPem('Its key: PEM, or the path of a PEM file.'),
    passphrase: secretPem('Of a key that is encrypted.'),
    minVersion: { enum: ['TLSv1.2', 'TLSv1.3'], default: 'TLSv1.2', description: 'The oldest version that is spoken.' },
    handshakeTimeout: duration('How long a handshake may take.', { default: '10s' }),
  },
  {
    title: 'HttpTls',
    required: ['cert', 'key'],
    description: 'Serves HTTPS. Files are relative to the config, and read again on reload (SIGHUP).',
  },
)

// What to change where Microsoft Entra says no, by the numbers of its errors.
import { type Row, row } from './explain-row.ts'
import type { UpstreamFault } from './upstream.ts'

const ENTRA_APP = 'In the Microsoft Entra admin center, App registrations, your application'

const entra = (number: string, fix: string, fault?: UpstreamFault) =>
  row('entra', { text: new RegExp(`\\bAADSTS${number}\\b`) }, fix, fault)

export const ENTRA: readonly Row[] = [
  entra(
    '50011',
    `${ENTRA_APP}, Authentication, platform Web: add the redirect URI of the bridge exactly.`,
    'misconfigured',
  ),
  entra(
    '50105',
    'In the Microsoft Entra admin center, Enterprise applications, your application, Users and groups: assign the person, or a group of theirs.',
    'refused',
  ),
  entra('65001', `${ENTRA_APP}, API permissions: add what the scopes name and grant admin consent.`, 'misconfigured'),
  entra('90094', `${ENTRA_APP}, API permissions: grant admin consent; people may not consent here.`, 'misconfigured'),
  entra(
    '650053',
    `A scope does not exist at its API. Correct \`scopes\`; ${ENTRA_APP}, API permissions lists what there is.`,
    'misconfigured',
  ),
  entra('650057', `${ENTRA_APP}, API permissions: add the API that the scopes name.`, 'misconfigured'),
  entra(
    '700016',
    'There is no such application in this tenant: check clientId, the Application (client) ID, and tenant.',
    'misconfigured',
  ),
  entra(
    '7000215',
    `${ENTRA_APP}, Certificates & secrets: make a client secret, and put its Value, not its Secret ID, into clientSecret.`,
    'misconfigured',
  ),
  entra(
    '7000222',
    `The client secret has expired. ${ENTRA_APP}, Certificates & secrets: make another and put it into clientSecret.`,
    'misconfigured',
  ),
  entra('7000218', `Set clientSecret; or ${ENTRA_APP}, Authentication: allow public client flows.`, 'misconfigured'),
  entra(
    '90002',
    'There is no such tenant: check tenant, the Directory (tenant) ID in the Overview of the Microsoft Entra admin center.',
    'misconfigured',
  ),
  entra(
    '900023',
    'The tenant is no id: check tenant, the Directory (tenant) ID in the Overview of the Microsoft Entra admin center.',
    'misconfigured',
  ),
  entra(
    '9010010',
    'Scopes of one request must be of one API, and `resource` must not be sent: check `scopes` and `parameters`.',
    'misconfigured',
  ),
  entra(
    '28000',
    'Scopes of several APIs in one request: name scopes of one API in `scopes`, and get the others with ctx.upstreamToken.',
    'misconfigured',
  ),
  entra(
    '70011',
    'A scope is not written as Entra wants it: check `scopes`, such as api://<id>/<scope>.',
    'misconfigured',
  ),
  entra(
    '500113',
    `${ENTRA_APP}, Authentication: add the platform Web with the redirect URI of the bridge.`,
    'misconfigured',
  ),
  entra(
    '50076',
    'The person must sign in again with a second factor, which a policy of conditional access asks for.',
    'refused',
  ),
  entra(
    '53003',
    'A policy of conditional access blocks this sign-in: see the sign-in logs in the Microsoft Entra admin center.',
    'refused',
  ),
  entra('50057', 'The account is disabled in Microsoft Entra.', 'refused'),
  entra('(?:70008|700082|50173)', 'The login has ended there: the person must sign in again.', 'refused'),
]

// tool-policy: policies, rules, and what names them.
import { type Row, withPlugin } from './row.ts'

const AUTH =
  '  auth-jwt: { authority: "http://127.0.0.1:9" }\n  resource-metadata: { authorizationServers: ["http://127.0.0.1:9"] }\n'
const policy = (text: string, routes = 'routes: { /: { toolsets: a } }') =>
  withPlugin(`${AUTH}  tool-policy:\n${text}`, { routes })

export const POLICY_ROWS: readonly Row[] = [
  {
    mistake: 'a rule with a misspelt policy',
    files: policy('    policies: { admin: { role: admin } }\n    rules:\n      echo: amdin # HERE'),
    names: ['"amdin"', '"admin"'],
  },
  {
    mistake: 'a rule with an unknown policy',
    files: policy('    policies: { admin: { role: admin } }\n    rules:\n      echo: everybody # HERE'),
    names: ['"everybody"'],
  },
  {
    mistake: 'a detailed rule with an unknown policy',
    files: policy('    rules:\n      echo: { policy: everybody } # HERE'),
    names: ['"everybody"'],
  },
  {
    mistake: 'a route with a misspelt policy',
    files: policy(
      '    policies: { admin: { role: admin } }',
      'routes:\n  /:\n    toolsets: a\n    authorize: admim # HERE',
    ),
    names: ['"admim"', '"admin"'],
  },
  {
    mistake: 'a rule that matches nothing',
    files: policy('    rules:\n      ehco: { role: admin } # HERE'),
    severity: 'warning',
    names: ['"echo"'],
  },
  {
    mistake: 'a rule over URIs without its prefix',
    files: policy('    rules:\n      "notes://*": { role: admin } # HERE'),
    severity: 'warning',
    names: ['URIs', '"resource:"'],
  },
  {
    mistake: 'a scope with a space',
    files: policy('    policies:\n      both:\n        scope: a b # HERE'),
    names: ['"a b"'],
  },
  {
    mistake: 'a claim without a value',
    files: policy('    policies:\n      gold:\n        claim:\n          tier: [] # HERE'),
    names: ['empty list'],
  },
  {
    mistake: 'anyOf that is empty',
    files: policy('    policies:\n      any:\n        anyOf: [] # HERE'),
    names: ['empty list'],
  },
  {
    mistake: 'a policy with a key that is not known',
    files: policy('    policies:\n      admin:\n        roles: admin # HERE'),
    names: ['"role"'],
  },
  {
    mistake: 'a mode that is not known',
    files: policy('    mode: shadwo # HERE'),
    names: ['"shadwo"', '"shadow"'],
  },
  {
    mistake: 'an answer to denied calls that is not known',
    files: policy('    onDenied: refuse # HERE'),
    names: ['"refuse"'],
  },
]

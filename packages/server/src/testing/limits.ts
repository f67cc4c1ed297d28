/** Limiters of every kind, small enough to be filled by a test. */
export const LIMITS = `
limiters:
  api: { rules: [{ limit: 3, window: 1m }], key: "{ip}" }
  login:
    rules:
      - { name: account, limit: 2, window: 1m, by: [account] }
      - { name: address, limit: 5, window: 1h, by: [ip] }
    key: { account: "{header:x-account}", ip: "{ip}" }
  tokens: { rules: [{ limit: 100, window: 1m }] }
  beside:
    rules:
      - { name: enforced, limit: 3, window: 1m }
      - { name: trial, limit: 1, window: 1m, shadow: true }
  trial: { shadow: true, rules: [{ limit: 1, window: 1m }] }
  plain: { rules: [{ limit: 1, window: 1m }] }
`;

payments_setting() (
  found=$(sed -n "s/^$1=//p" __ENV_FILE__ | tail -n 1 |
    sed -e 's/^"\(.*\)".*/\1/' -e t -e "s/^'\(.*\)'.*/\1/" -e t -e 's/[[:space:]]*#.*//')
  echo "${found:-$2}"
)
export PAYMENTS_URL="http://localhost:${GATEWAY_PORT:-$(payments_setting GATEWAY_PORT 8080)}"
export JWT_ISSUER="${JWT_ISSUER:-$(payments_setting JWT_ISSUER payments)}"
export JWT_AUDIENCE="${JWT_AUDIENCE:-$(payments_setting JWT_AUDIENCE payments)}"
export JWT_MERCHANT_CLAIM="${JWT_MERCHANT_CLAIM:-$(payments_setting JWT_MERCHANT_CLAIM '')}"
export DATA_DIR=__KEYS__
unset -f payments_setting

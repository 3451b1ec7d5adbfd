// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {EmissionController} from "./EmissionController.sol";
import {Guarded} from "./Guarded.sol";
import {TallyToken} from "./TallyToken.sol";

/// @title The burn side of burn and mint: tokens are destroyed, the ledger grants credits.
/// @notice credits = floor(amount * microUsdPerToken / 10^8), in CREDIT units of a micro-USD, at a price
/// that the oracle signed off-chain. The ledger credits `accountRef` once CreditsPurchased is final.
/// @dev Purchase ids are dense from 1, so a gap shows the ledger that it missed a log. One price per
/// round; rounds never fall; a new round comes at least minRoundInterval after the last and moves the
/// price by at most maxMoveBps, and by as much again for each whole day without a round, of which 30
/// count. So a stolen oracle key can walk the price only slowly, in public, and a true price that moved
/// while nobody bought stops no purchase.
contract CreditBurner is Guarded, EIP712 {
    using SafeCast for uint256;

    /// @notice May replace the oracle. Belongs behind a timelock.
    bytes32 public constant ORACLE_ADMIN_ROLE = keccak256("ORACLE_ADMIN_ROLE");
    /// @notice EIP-712 type of the quote that the oracle signs.
    bytes32 public constant PRICE_TYPEHASH =
        keccak256("PriceQuote(uint64 round,uint64 validAfter,uint64 validUntil,uint256 microUsdPerToken)");

    /// @notice Days without a round that widen the next move.
    uint256 public constant MAX_QUIET_DAYS = 30;

    /// @notice A price, live from `validAfter` to `validUntil` inclusive, in micro-USD per 10^8 token units.
    struct PriceQuote {
        uint64 round;
        uint64 validAfter;
        uint64 validUntil;
        uint256 microUsdPerToken;
    }

    /// @notice The token burned.
    TallyToken public immutable token;
    /// @notice Hears of every burn.
    EmissionController public immutable emission;
    /// @notice Longest life of a quote, seconds.
    uint64 public immutable maxQuoteLife;
    /// @notice Largest move between two rounds of one day, in basis points of the earlier price.
    uint16 public immutable maxMoveBps;
    /// @notice Seconds between two rounds.
    uint64 public immutable minRoundInterval;

    /// @notice Signs quotes: an ordinary account or an ERC-1271 contract. Zero: no purchases.
    address public oracle;
    /// @notice Id of the next purchase. Shares its slot with `oracle`.
    uint64 public nextPurchaseId = 1;
    /// @notice The last round accepted. Shares its slot with the two fields below.
    uint64 public lastRound;
    /// @notice When it was accepted, Unix seconds; after a new oracle, not more than one interval before.
    uint64 public lastRoundAt;
    /// @notice Its price, or the anchor price that came with the oracle, micro-USD per whole token.
    uint128 public lastPrice;

    /// @notice The oracle was replaced; rounds start again from zero and the price from `anchorPrice`.
    event OracleSet(address indexed oracle, uint256 anchorPrice);
    /// @notice A new round began.
    event PriceAccepted(uint64 indexed round, uint256 microUsdPerToken);
    /// @notice Tokens were burned for credits.
    /// @param accountRef Whom the ledger credits.
    /// @param memo The payer's own reference.
    /// @param credits CREDIT units.
    event CreditsPurchased(
        uint256 indexed purchaseId,
        address indexed payer,
        bytes32 indexed accountRef,
        bytes32 memo,
        uint256 tokensBurned,
        uint256 credits,
        uint64 round
    );

    /// @notice Nothing to burn.
    error ZeroAmount();
    /// @notice The quote is not live yet, not live any more, or lives longer than allowed.
    error QuoteNotLive(uint64 validAfter, uint64 validUntil, uint64 lifeMax, uint256 nowS);
    /// @notice The round is over, or it already has another price.
    error QuoteStale(uint64 lastRound, uint256 lastPrice, uint64 round, uint256 price);
    /// @notice The quote is not signed by the oracle.
    error QuoteBadSigner(address oracle);
    /// @notice The next round may begin later than now.
    error RoundTooSoon(uint64 readyAt, uint256 nowS);
    /// @notice The price moved by more than allowed.
    error PriceMoveTooLarge(uint256 last, uint256 moveMax, uint256 got);
    /// @notice Fewer credits than the payer insists on, or none at all.
    error SlippageExceeded(uint256 minCredits, uint256 got);

    /// @param token_ The token burned.
    /// @param emission_ Hears of burns; this contract needs its BURN_REPORTER_ROLE.
    /// @param admin First admin.
    /// @param adminDelayS Seconds between the two steps of a transfer of the admin role.
    /// @param maxQuoteLife_ Longest life of a quote, seconds.
    /// @param maxMoveBps_ Largest move between two rounds, basis points.
    /// @param minRoundInterval_ Seconds between two rounds.
    constructor(
        TallyToken token_,
        EmissionController emission_,
        address admin,
        uint48 adminDelayS,
        uint64 maxQuoteLife_,
        uint16 maxMoveBps_,
        uint64 minRoundInterval_
    ) Guarded(admin, adminDelayS) EIP712("Tallystick CreditBurner", "1") {
        _notZero(address(token_), "token");
        _notZero(address(emission_), "emission");
        (token, emission) = (token_, emission_);
        (maxQuoteLife, maxMoveBps, minRoundInterval) = (maxQuoteLife_, maxMoveBps_, minRoundInterval_);
    }

    /// @notice Replaces the oracle and starts the rounds again.
    /// @dev The rounds must restart: a stolen key may have signed round 2^64 - 1, which would block
    /// purchases for good.
    /// @param oracle_ The new signer; zero stops purchases.
    /// @param anchorPrice The first round may move at most maxMoveBps away from it.
    function setOracle(address oracle_, uint256 anchorPrice) external onlyRole(ORACLE_ADMIN_ROLE) {
        oracle = oracle_;
        lastPrice = anchorPrice.toUint128();
        lastRound = 0;
        // The age of the anchor counts, not that of the last round; and no round comes sooner for it.
        uint256 readyNow = block.timestamp - minRoundInterval;
        lastRoundAt = Math.max(lastRoundAt, readyNow).toUint64();
        emit OracleSet(oracle_, anchorPrice);
    }

    /// @notice Burns `amount` of the sender's tokens for credits. Needs an allowance.
    /// @param amount Token units.
    /// @param minCredits Refuse below this many CREDIT units.
    /// @param accountRef Whom the ledger credits; an unknown one is held in suspense, not lost.
    /// @param memo The payer's own reference.
    /// @param quote The signed price.
    /// @param signature The oracle's signature over `hashQuote(quote)`.
    /// @return credits CREDIT units bought.
    function burnForCredits(
        uint256 amount,
        uint256 minCredits,
        bytes32 accountRef,
        bytes32 memo,
        PriceQuote calldata quote,
        bytes calldata signature
    ) public whenNotPaused returns (uint256 credits) {
        require(amount != 0, ZeroAmount());
        _acceptQuote(quote, signature);
        credits = Math.mulDiv(amount, quote.microUsdPerToken, 1e8);
        require(credits >= minCredits && credits != 0, SlippageExceeded(minCredits, credits));
        uint256 purchaseId = nextPurchaseId++;
        emit CreditsPurchased(purchaseId, msg.sender, accountRef, memo, amount, credits, quote.round);
        token.burnFrom(msg.sender, amount);
        emission.recordBurn(amount);
    }

    /// @notice The same with an EIP-2612 permit in place of an earlier approval.
    /// @dev The permit may fail: somebody may have spent it first to block the purchase. Then the
    /// allowance is already there, and if it is not, burnFrom refuses.
    /// @param deadline Last second of the permit.
    /// @param v Signature of the permit.
    /// @param r Signature of the permit.
    /// @param s Signature of the permit.
    /// @return credits CREDIT units bought.
    function burnForCreditsWithPermit(
        uint256 amount,
        uint256 minCredits,
        bytes32 accountRef,
        bytes32 memo,
        PriceQuote calldata quote,
        bytes calldata signature,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external returns (uint256 credits) {
        try token.permit(msg.sender, address(this), amount, deadline, v, r, s) {} catch {}
        return burnForCredits(amount, minCredits, accountRef, memo, quote, signature);
    }

    /// @notice The EIP-712 digest that the oracle signs.
    function hashQuote(PriceQuote calldata quote) public view returns (bytes32) {
        return _hashTypedDataV4(
            keccak256(
                abi.encode(
                    PRICE_TYPEHASH, quote.round, quote.validAfter, quote.validUntil, quote.microUsdPerToken
                )
            )
        );
    }

    function _acceptQuote(PriceQuote calldata quote, bytes calldata signature) private {
        require(
            block.timestamp >= quote.validAfter && block.timestamp <= quote.validUntil
                && quote.validUntil - quote.validAfter <= maxQuoteLife,
            QuoteNotLive(quote.validAfter, quote.validUntil, maxQuoteLife, block.timestamp)
        );
        (uint64 round, uint256 price) = (lastRound, lastPrice);
        bool isNewRound = quote.round > round;
        require(
            isNewRound || (quote.round == round && quote.microUsdPerToken == price),
            QuoteStale(round, price, quote.round, quote.microUsdPerToken)
        );
        address signer = oracle;
        require(
            signer != address(0) && SignatureChecker.isValidSignatureNow(signer, hashQuote(quote), signature),
            QuoteBadSigner(signer)
        );
        if (isNewRound) _beginRound(quote, price);
    }

    function _beginRound(PriceQuote calldata quote, uint256 last) private {
        uint64 readyAt = lastRoundAt + minRoundInterval;
        require(block.timestamp >= readyAt, RoundTooSoon(readyAt, block.timestamp));
        uint256 price = quote.microUsdPerToken;
        uint256 quietDays = Math.min((block.timestamp - lastRoundAt) / 1 days, MAX_QUIET_DAYS);
        uint256 moveMax = Math.mulDiv(last, maxMoveBps * (1 + quietDays), 10_000);
        require((price > last ? price - last : last - price) <= moveMax, PriceMoveTooLarge(last, moveMax, price));
        (lastRound, lastRoundAt, lastPrice) = (quote.round, uint64(block.timestamp), price.toUint128());
        emit PriceAccepted(quote.round, price);
    }
}
